import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { afterEach } from "vitest";

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

async function portOf(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

/** A server that answers as the test wants, until that is over. Tells its port. */
export async function answering(
  answer: (request: IncomingMessage, response: ServerResponse) => unknown,
): Promise<number> {
  const server = createHttpServer((request, response) => {
    request.resume();
    request.once("end", () => void answer(request, response));
  });
  // What is idle stays open until somebody closes it: a test that waits for that must not see the server do it.
  server.keepAliveTimeout = 0;
  closing.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return portOf(server);
}

/** A line to a server. From `die` on, what is open carries nothing any more and nobody is told; what is new works. */
export async function line(target: number) {
  const open = new Set<Socket>();
  const dead = new Set<Socket>();
  /** Dead connections over which something was sent. */
  const swallowed = new Set<Socket>();
  const proxy = createServer((near) => {
    const far = connect(target, "127.0.0.1");
    open.add(near);
    near.on("data", (bytes) => (dead.has(near) ? swallowed.add(near) : far.write(bytes)));
    far.on("data", (bytes) => void (dead.has(near) || near.write(bytes)));
    for (const side of [near, far]) side.on("error", () => undefined);
    near.on("close", () => far.destroy());
    far.on("close", () => void (dead.has(near) || near.destroy()));
  });
  const port = await portOf(proxy);
  closing.push(() => {
    for (const socket of open) socket.destroy();
    proxy.close();
  });
  const die = (): void => {
    for (const socket of open) dead.add(socket);
  };
  return { url: `http://127.0.0.1:${port}`, open, swallowed, die };
}
