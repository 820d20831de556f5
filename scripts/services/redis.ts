import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findProgram } from "./install.ts";
import { freePort, givenService, ServerProcess, type Service } from "./service.ts";

const VARIABLE = "MILLRACE_TEST_REDIS_URL";

/**
 * A real Redis with the settings of the strict profile: every write is on disk before it is answered. One that is not
 * shared is never a server that was given: the test changes its settings.
 */
export async function startRedis({ shared }: { readonly shared: boolean } = { shared: true }): Promise<Service> {
  const given = process.env[VARIABLE];
  if (given !== undefined && shared) return givenService(given);
  const program = await findProgram({
    program: "redis-server",
    folders: [],
    debianPackage: "redis-server",
    variable: VARIABLE,
  });
  const port = await freePort();
  const folder = await mkdtemp(join(tmpdir(), "millrace-redis-"));
  const server = new ServerProcess(program, [...settings(port, folder)]);
  await server.waitUntil(() => answersPing(port));
  return {
    url: `redis://127.0.0.1:${port}`,
    stop: async () => {
      await server.stop("SIGTERM");
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function settings(port: number, folder: string): readonly string[] {
  const flags = {
    bind: "127.0.0.1",
    port: String(port),
    dir: folder,
    save: "",
    appendonly: "yes",
    appendfsync: "always",
    maxmemory: "256mb",
    "maxmemory-policy": "noeviction",
  };
  return Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value]);
}

async function answersPing(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  socket.write("PING\r\n");
  const answer = once(socket, "data").then(([data]) => String(data));
  const closed = once(socket, "close").then(() => "");
  answer.catch(() => {});
  closed.catch(() => {});
  const text = await Promise.race([answer, closed]).catch(() => "");
  socket.destroy();
  return text.startsWith("+PONG");
}
