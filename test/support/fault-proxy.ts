import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

/** A way to a server on which answers can be lost: what was sent has arrived all the same. */
export interface FaultProxy {
  readonly port: number;
  /** How many times somebody has connected. */
  readonly connections: number;
  /** What becomes of answers: they pass, are swallowed, or the connection is cut in their place. */
  answers: "pass" | "swallow" | "cut";
  /** Where who connects from now on is led to. */
  targetPort: number;
  close(): Promise<void>;
}

export async function startFaultProxy(targetPort: number): Promise<FaultProxy> {
  const sockets = new Set<Socket>();
  const state = { answers: "pass" as FaultProxy["answers"], connections: 0, targetPort };
  const server = createServer((near) => {
    state.connections++;
    const far = connect(state.targetPort, "127.0.0.1");
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
    near.on("data", (data) => far.write(data));
    far.on("data", (data) => {
      if (state.answers === "pass") near.write(data);
      else if (state.answers === "cut") near.destroy();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as { readonly port: number }).port,
    get connections() {
      return state.connections;
    },
    get answers() {
      return state.answers;
    },
    set answers(answers) {
      state.answers = answers;
    },
    get targetPort() {
      return state.targetPort;
    },
    set targetPort(port) {
      state.targetPort = port;
    },
    close: async () => {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, "close");
    },
  };
}
