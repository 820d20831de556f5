import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const BIN: string = join(import.meta.dirname, "../../bin/millrace");

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ProgramOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** What stands on stdin. */
  readonly input?: string;
}

/** A program under way. */
export interface Program {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  /** Once this stands on stdout or stderr. Fails if the program ends before. */
  says(pattern: RegExp): Promise<RegExpExecArray>;
}

/** The environment without what would change how a command behaves. */
function cleanEnv(): NodeJS.ProcessEnv {
  const env = { ...process.env };
  for (const name of Object.keys(env))
    if (/^(MILLRACE_|PORT$|LOG_LEVEL$|OPENAI_|FORCE_COLOR$|CI$|NODE_)/.test(name)) delete env[name];
  return env;
}

/** Starts the real bin/millrace. */
export function start(args: readonly string[], { cwd = tmpdir(), env = {}, input }: ProgramOptions = {}): Program {
  const child = spawn(BIN, args, { cwd, env: { ...cleanEnv(), ...env }, stdio: ["pipe", "pipe", "pipe"] });
  let stdout = "";
  let stderr = "";
  let look: () => void = () => undefined;
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
    look();
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
    look();
  });
  running.add(child);
  child.on("close", () => running.delete(child));
  child.stdin.on("error", () => undefined);
  child.stdin.end(input ?? "");
  const ended = new Promise<Ended>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, stdout, stderr }));
  });
  const says = (pattern: RegExp): Promise<RegExpExecArray> =>
    new Promise((resolve, reject) => {
      look = () => {
        const found = pattern.exec(stdout) ?? pattern.exec(stderr);
        if (found !== null) resolve(found);
      };
      look();
      void ended.then(({ code }) =>
        reject(new Error(`ended with ${code} before it said ${pattern}:\n${stdout}\n${stderr}`)),
      );
    });
  return { child, ended, says };
}

/** Runs the real bin/millrace to its end. */
export function millrace(args: readonly string[], options: ProgramOptions = {}): Promise<Ended> {
  return start(args, options).ended;
}

export interface Serving {
  readonly url: string;
  readonly program: Program;
  /** As an operator stops it. */
  stop(): Promise<Ended>;
  /** As the power goes. */
  kill(): Promise<Ended>;
}

/** A real server on a free port. */
export async function serve(
  store: string,
  args: readonly string[] = [],
  options: ProgramOptions = {},
): Promise<Serving> {
  const program = start(["serve", "--port", "0", "--store", store, ...args], options);
  const [, url] = await program.says(/"url":"(http:[^"]+)"/);
  return serving(url!, program);
}

/** `millrace dev` on a free port, once it has said what it has to say. */
export async function dev(args: readonly string[], options: ProgramOptions): Promise<Serving> {
  const program = start(["dev", "--port", "0", ...args], options);
  const [, url] = await program.says(/embedded · .* · (http:\S+)/);
  return serving(url!, program);
}

export function serving(url: string, program: Program): Serving {
  const end = (signal: NodeJS.Signals) => (): Promise<Ended> => {
    program.child.kill(signal);
    return program.ended;
  };
  return { url, program, stop: end("SIGTERM"), kill: end("SIGKILL") };
}

/** An empty folder that goes away with the test, with some files. */
export function folder(files: Readonly<Record<string, string>> = {}): string {
  const path = mkdtempSync(join(tmpdir(), "millrace-cli-"));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(path, name), text);
  made.push(path);
  return path;
}

const made: string[] = [];
const running = new Set<ChildProcess>();

/** To be called when all tests of a file are over: a test that failed may have left a program behind. */
export function cleanUp(): void {
  for (const child of running) child.kill("SIGKILL");
  for (const path of made.splice(0)) rmSync(path, { recursive: true, force: true });
}

type Headers = Readonly<Record<string, string>>;

export async function getJson<Answer>(url: string, headers: Headers = {}): Promise<Answer> {
  const response = await fetch(url, { headers });
  return (await response.json()) as Answer;
}

export async function postJson<Answer>(url: string, body: unknown, headers: Headers = {}): Promise<Answer> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
  return (await response.json()) as Answer;
}
