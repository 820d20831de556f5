import { execFile } from "node:child_process";
import { chown, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { findProgram } from "./install.ts";
import { freePort, givenService, type MortalService, ServerProcess, type Service } from "./service.ts";

const VARIABLE = "MILLRACE_TEST_POSTGRES_URL";
const ORPHANS_GONE_WITHIN_MS = 30_000;
const run = promisify(execFile);

interface User {
  readonly uid: number;
  readonly gid: number;
}

type ServerSettings = Readonly<Record<string, string>>;

/** A real Postgres with its own data, as it comes unless settings are given: fsync is on. */
export async function startPostgres(settings: ServerSettings = {}): Promise<Service> {
  const given = process.env[VARIABLE];
  return given === undefined ? startPostgresServer(settings) : givenService(given);
}

/** One that a test may end: SIGINT shuts it down in order, SIGQUIT and SIGKILL do not. */
export async function startPostgresServer(settings: ServerSettings = {}): Promise<MortalService> {
  const program = await findProgram({
    program: "postgres",
    folders: ["/usr/lib/postgresql/*/bin"],
    debianPackage: "postgresql",
    variable: VARIABLE,
  });
  const bin = dirname(program);
  const user = await postgresUser();
  const folder = await mkdtemp(join(tmpdir(), "millrace-postgres-"));
  if (user !== undefined) await chown(folder, user.uid, user.gid);
  const data = join(folder, "data");
  const how = ["--auth-host=trust", "--auth-local=trust", "--username=postgres", "--encoding=UTF8", "--locale=C"];
  await run(join(bin, "initdb"), ["--pgdata", data, ...how], { cwd: folder, ...user });
  const port = await freePort();
  const more = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const args = ["-D", data, "-h", "127.0.0.1", "-p", String(port), "-k", folder, ...more];
  let server: ServerProcess | undefined;
  const begin = async (): Promise<void> => {
    const deadlineMs = performance.now() + ORPHANS_GONE_WITHIN_MS;
    for (;;) {
      server = new ServerProcess(program, args, user);
      try {
        return await server.waitUntil(() => acceptsConnections(bin, port));
      } catch (error) {
        // Sessions of a server that was killed outlive it for a moment, and no other may have the data while they do.
        if (!String(error).includes("pre-existing shared memory") || performance.now() > deadlineMs) throw error;
        await sleep(100);
      }
    }
  };
  await begin();
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    port,
    begin,
    end: async (signal) => server?.stop(signal),
    signal: (signal) => server?.signal(signal),
    stop: async () => {
      // SIGINT ends sessions that are still open; SIGTERM would wait for them.
      await server?.stop("SIGINT");
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Postgres refuses to run as root; the Debian package has made a user for it. */
async function postgresUser(): Promise<User | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const [uid, gid] = await Promise.all([run("id", ["-u", "postgres"]), run("id", ["-g", "postgres"])]);
  return { uid: Number(uid.stdout), gid: Number(gid.stdout) };
}

async function acceptsConnections(bin: string, port: number): Promise<boolean> {
  const args = ["--quiet", "--host=127.0.0.1", `--port=${port}`];
  return run(join(bin, "pg_isready"), args).then(
    () => true,
    () => false,
  );
}
