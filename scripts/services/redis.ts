import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findProgram } from "./install.ts";
import { freePort, givenService, type MortalService, ServerProcess, type Service } from "./service.ts";

const VARIABLE = "MILLRACE_TEST_REDIS_URL";

interface RedisNeeds {
  /** A test that changes the server's settings, or ends it, has one of its own, never one that was given. */
  readonly shared: boolean;
  /** Settings beside those of the strict profile, or in their place. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** A server that a test may end and start again on the same data. */
export interface OwnRedis extends MortalService {
  /** Where its data is. */
  readonly folder: string;
}

/** A real Redis with the settings of the strict profile: every write is on disk before it is answered. */
export async function startRedis(needs: RedisNeeds = { shared: true }): Promise<Service> {
  const given = process.env[VARIABLE];
  return given !== undefined && needs.shared ? givenService(given) : startOwnRedis(needs.settings);
}

export async function startOwnRedis(settings: Readonly<Record<string, string>> = {}): Promise<OwnRedis> {
  const program = await findProgram({
    program: "redis-server",
    folders: [],
    debianPackage: "redis-server",
    variable: VARIABLE,
  });
  const port = await freePort();
  const folder = await mkdtemp(join(tmpdir(), "millrace-redis-"));
  const args = Object.entries({ ...STRICT, port: String(port), dir: folder, ...settings }).flatMap(([name, value]) => [
    `--${name}`,
    value,
  ]);
  let server: ServerProcess;
  const begin = async (): Promise<void> => {
    server = new ServerProcess(program, args);
    await server.waitUntil(() => answersPing(port));
  };
  await begin();
  const end = (signal: NodeJS.Signals): Promise<void> => server.stop(signal);
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    folder,
    begin,
    end,
    signal: (signal) => server.signal(signal),
    stop: async () => {
      await end("SIGTERM");
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const STRICT = {
  bind: "127.0.0.1",
  save: "",
  appendonly: "yes",
  appendfsync: "always",
  maxmemory: "256mb",
  "maxmemory-policy": "noeviction",
};

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
  // One that wants a password first is there as well.
  return text.startsWith("+PONG") || text.startsWith("-NOAUTH");
}
