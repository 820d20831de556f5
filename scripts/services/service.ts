import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** A server that the tests may use, started here or somebody else's. */
export interface Service {
  readonly url: string;
  /** Stops what was started here and removes its data; does nothing to a server that was given. */
  stop(): Promise<void>;
}

/** One whose death is part of the test. It keeps its address and its data. */
export interface MortalService extends Service {
  readonly port: number;
  /** Ends it by this signal, by SIGKILL as if it were shot, and waits until it is gone. */
  end(signal: NodeJS.Signals): Promise<void>;
  /** Starts it again. */
  begin(): Promise<void>;
  signal(signal: NodeJS.Signals): void;
}

const READY_WITHIN_MS = 30_000;
const STOPPED_WITHIN_MS = 10_000;
const SETPRIV = "/usr/bin/setpriv";
/** Below those that a system gives to whoever asks for any, and to the near end of every connection. */
const FIRST_PORT = 10_240;
const PORTS_END = 32_768;

export function givenService(url: string): Service {
  return { url, stop: async () => {} };
}

/**
 * A port that stays free until somebody listens on it, and again while that one is being restarted: the system gives it to
 * nobody by chance, and no other process that asks here is given it while this one lives.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST_PORT + Math.floor(Math.random() * (PORTS_END - FIRST_PORT));
    if (!(await isClaimedNow(port))) continue;
    const server = createServer();
    server.listen(port, "127.0.0.1");
    try {
      await once(server, "listening");
    } catch {
      continue;
    }
    server.close();
    await once(server, "close");
    return port;
  }
}

/** A name that only one process can listen on and that ends with it, on the system that has such names. */
async function isClaimedNow(port: number): Promise<boolean> {
  if (process.platform !== "linux") return true;
  const claim = createServer().unref();
  claim.listen(`\0millrace-port-${port}`);
  try {
    await once(claim, "listening");
    return true;
  } catch {
    return false;
  }
}

/** A server process, and what it has said: the only explanation there is when it does not come up. */
export class ServerProcess {
  readonly #process: ChildProcess;
  #output = "";

  constructor(command: string, args: readonly string[], user?: { readonly uid: number; readonly gid: number }) {
    const [program, programArgs] = diesWithUs(command, args);
    this.#process = spawn(program, programArgs, { stdio: ["ignore", "pipe", "pipe"], ...user });
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      stream?.on("data", (chunk: Buffer) => {
        this.#output = (this.#output + chunk.toString()).slice(-10_000);
      });
    }
    this.#process.on("error", (error) => {
      this.#output += error.message;
    });
  }

  async waitUntil(isReady: () => Promise<boolean>): Promise<void> {
    const deadlineMs = performance.now() + READY_WITHIN_MS;
    while (performance.now() < deadlineMs) {
      if (this.#hasEnded) break;
      if (await isReady()) return;
      await sleep(50);
    }
    await this.stop("SIGKILL");
    throw new Error(`${this.#process.spawnfile} did not come up:\n${this.#output}`);
  }

  signal(signal: NodeJS.Signals): void {
    this.#process.kill(signal);
  }

  async stop(signal: NodeJS.Signals): Promise<void> {
    if (this.#hasEnded) return;
    const ended = once(this.#process, "exit");
    this.#process.kill(signal);
    const gaveUp = sleep(STOPPED_WITHIN_MS, true, { ref: false });
    if ((await Promise.race([ended, gaveUp])) === true) this.#process.kill("SIGKILL");
    await ended;
  }

  get #hasEnded(): boolean {
    const { pid, exitCode, signalCode } = this.#process;
    return pid === undefined || exitCode !== null || signalCode !== null;
  }
}

/** A test run that is killed leaves no server behind, where the system can see to that. */
function diesWithUs(command: string, args: readonly string[]): [string, readonly string[]] {
  return existsSync(SETPRIV) ? [SETPRIV, ["--pdeathsig", "INT", "--", command, ...args]] : [command, args];
}
