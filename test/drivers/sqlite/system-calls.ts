import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";

/** Whether what a process asks of the system can be seen and bent here: with strace, and the right to use it. */
export function canTrace(): boolean {
  return spawnSync("strace", ["-f", "-o", "/dev/null", "true"]).status === 0;
}

/** Follows a process and all its threads until the function it answers is called. */
export async function trace(pid: number, ...options: readonly string[]): Promise<() => Promise<void>> {
  const strace = spawn("strace", ["-f", "-p", String(pid), ...options], { stdio: ["ignore", "ignore", "pipe"] });
  const exited = once(strace, "exit");
  // It says so on this stream when it has attached.
  await once(strace.stderr, "data");
  return async () => {
    strace.kill("SIGINT");
    await exited;
  };
}
