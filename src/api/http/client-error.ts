import type { Socket } from "node:net";
import { plainProblem, PROBLEM_TYPE, type ProblemAnswer } from "./problem.ts";

/** The parser gave up: there is no request, only a socket. */
export function clientError(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  if (error.code === "HPE_HEADER_OVERFLOW") return endSocket(socket, plainProblem("HEADERS_TOO_LARGE", {}));
  if (error.code === "ERR_HTTP_REQUEST_TIMEOUT") return endSocket(socket, plainProblem("REQUEST_TIMEOUT", {}));
  return endSocket(socket, plainProblem("BAD_REQUEST", { reason: "This is not a request of HTTP/1.1" }));
}

export function endSocket(socket: Socket, { problem }: ProblemAnswer): void {
  const body = JSON.stringify(problem);
  const length = Buffer.byteLength(body);
  socket.end(
    `HTTP/1.1 ${problem.status} ${problem.title}\r\ncontent-type: ${PROBLEM_TYPE}\r\ncontent-length: ${length}\r\nconnection: close\r\n\r\n${body}`,
    () => socket.destroy(),
  );
}
