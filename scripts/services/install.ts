import { spawnSync } from "node:child_process";
import { existsSync, globSync, mkdirSync, rmdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const LOCK = join(tmpdir(), "millrace-services-install.lock");
const LOCK_TRIES = 600;

export interface Wanted {
  readonly program: string;
  /** Folders beside those of PATH; `*` stands for any name. */
  readonly folders: readonly string[];
  readonly debianPackage: string;
  /** The variable that names a server to use instead. */
  readonly variable: string;
}

/** The path of a server's program; installs its Debian package if it has to and may. */
export async function findProgram(wanted: Wanted): Promise<string> {
  const found = find(wanted);
  if (found !== undefined) return found;
  const mayInstall = process.getuid?.() === 0 && existsSync("/usr/bin/apt-get");
  // Two test files that find the same program missing must not run apt-get at once: its lock refuses the second.
  if (mayInstall) await withLock(() => find(wanted) ?? install(wanted.debianPackage));
  const installed = find(wanted);
  if (installed !== undefined) return installed;
  const { program, debianPackage, variable } = wanted;
  throw new Error(
    `${program} is missing: install the package ${debianPackage}, or name a running server by ${variable}`,
  );
}

function find({ program, folders }: Wanted): string | undefined {
  const path = (process.env["PATH"] ?? "").split(delimiter);
  // Of several versions the one that sorts last, which is the newest.
  const more = folders.flatMap((folder) => globSync(folder).toSorted().toReversed());
  return [...more, ...path].map((folder) => join(folder, program)).find((file) => existsSync(file));
}

function install(debianPackage: string): void {
  // RUNLEVEL=1 keeps the package from starting its own server at once: nobody asked for that one.
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive", RUNLEVEL: "1" };
  const args = ["install", "--yes", "--no-install-recommends", debianPackage];
  if (run("apt-get", args, env)) return;
  run("apt-get", ["update"], env);
  run("apt-get", args, env);
}

function run(command: string, args: readonly string[], env: NodeJS.ProcessEnv): boolean {
  return spawnSync(command, args, { env, stdio: ["ignore", "ignore", "inherit"] }).status === 0;
}

/** One after the other, also in several processes. */
export async function withLock(work: () => unknown): Promise<void> {
  for (let i = 0; !lock(); i++) {
    if (i === LOCK_TRIES) throw new Error(`somebody else is installing, or ${LOCK} was left behind`);
    await sleep(500);
  }
  try {
    await work();
  } finally {
    rmdirSync(LOCK);
  }
}

function lock(): boolean {
  try {
    mkdirSync(LOCK);
    return true;
  } catch {
    return false;
  }
}
