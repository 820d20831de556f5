import { resolve } from "node:path";
import { pages } from "../../page/pages.ts";
import type { MillraceProcess } from "../../process/process.ts";
import { isOver } from "../../drawing/states.ts";
import type { Json } from "../../json/json.ts";
import type { Settings } from "../../settings/declarations.ts";
import { shownAddress, storeAddress } from "../../settings/store-address.ts";
import { transitionOf } from "../../process/transitions.ts";
import { type Call, hasSwitch, type Verb } from "../call.ts";
import { definitionText, isModule } from "../definition-file.ts";
import { EXIT } from "../exit-code.ts";
import { Failure } from "../failure.ts";
import { jsonOption } from "../given-values.ts";
import { localSource } from "../local-source.ts";
import { harmless } from "../print.ts";
import { beginExecution, type Runnable } from "../project/begin-execution.ts";
import { findHandlerModules, findWorkflowFiles } from "../project/find-files.ts";
import { LiveHandlers } from "../project/live-handlers.ts";
import { runSummary } from "../project/run-summary.ts";
import { SAMPLE } from "../project/sample.ts";
import { projectModules } from "../project/project-modules.ts";
import { FileWatch } from "../project/watch-files.ts";
import { workflowsOfModule } from "../project/workflow-module.ts";
import { serveUntilInterrupted, startFailure, startProcess } from "../start-process.ts";

/** All in one process, for somebody who writes a workflow: runs it, shows what came of it, runs it again when it is saved. */
export const verb: Verb = async (call) => {
  const isEphemeral = hasSwitch(call, "ephemeral");
  const read = await call.settings({ logLevel: "warn", ...(isEphemeral && { store: "memory:" }) });
  const settings = isEphemeral ? { ...read.settings, store: "memory:" } : read.settings;
  const { directory } = call.terminal;
  const files = call.args.length > 0 ? call.args : findWorkflowFiles(directory);
  const modules = settings.handlers.length > 0 ? settings.handlers : findHandlerModules(directory);
  const input = await jsonOption(call, "input");
  const user = new LiveHandlers();
  await user.addModules(modules, directory).catch((error: unknown) => {
    throw startFailure(error, settings.port);
  });
  // Known before the worker first looks for tasks; what cannot be loaded is told when it is run.
  for (const file of files.filter(isModule)) {
    const workflows = await workflowsOfModule(directory, file).catch(() => []);
    for (const parts of workflows) user.addWorkflow(parts);
  }
  const started = await startProcess(
    call,
    { ...read, settings },
    { roles: ["api", "engine", "worker"], logTo: 2, loopback: true, pages, user },
  );
  const dev = new Dev(call, started.process, user, {
    files,
    modules,
    input,
    allowMissing: settings.allowMissingHandlers,
  });
  const interrupts = call.terminal.interrupts();
  interrupts.addEventListener("abort", () => dev.tellStop(settings), { once: true });
  await dev.begin(whereOf(settings));
  if (!hasSwitch(call, "no-run")) await dev.runAll(files);
  const close = hasSwitch(call, "no-watch") || interrupts.aborted ? () => undefined : dev.watch();
  await serveUntilInterrupted(call, started);
  close();
  return EXIT.done;
};

/** Where executions are kept, for the first line: it may be on a screen that others see, and an address may hold a password. */
function whereOf(settings: Settings): string {
  const address = storeAddress(settings);
  if ("fault" in address) return address.fault;
  switch (address.kind) {
    case "memory":
      return "embedded · in memory";
    case "sqlite":
      return `embedded · data in ${settings.store.replace(/^sqlite:/, "")}`;
    case "postgres":
    case "redis":
      return shownAddress(address);
  }
}

interface Project {
  readonly files: readonly string[];
  readonly modules: readonly string[];
  readonly input: Json | undefined;
  readonly allowMissing: boolean;
}

class Dev {
  readonly #call: Call;
  readonly #process: MillraceProcess;
  readonly #user: LiveHandlers;
  readonly #project: Project;
  readonly #url: string;
  readonly #counts = new Map<string, number>();

  constructor(call: Call, process: MillraceProcess, user: LiveHandlers, project: Project) {
    this.#call = call;
    this.#process = process;
    this.#user = user;
    this.#project = project;
    this.#url = process.url!.replace("//127.0.0.1:", "//localhost:");
  }

  async begin(where: string): Promise<void> {
    const { terminal } = this.#call;
    terminal.out(`${terminal.style("bold", "millrace dev")}   ${where} · ${this.#url}\n\n`);
    const { items } = await this.#process.store.queries.headers({ class: "open", limit: 1_000 });
    if (items.length > 0)
      terminal.out(
        `  ${items.length === 1 ? "1 execution goes" : `${items.length} executions go`} on from before: ${this.#url}/\n\n`,
      );
  }

  /** Runs every workflow of some files once, and tells what came of each. */
  async runAll(files: readonly string[]): Promise<void> {
    if (files.length === 0) {
      await this.#run({ text: { file: "the sample", source: SAMPLE, format: "yaml" } });
      return;
    }
    for (const file of files) {
      if (this.#call.terminal.interrupts().aborted) return;
      await this.#runFile(file);
    }
  }

  /** Said at once: a stop that waits for handlers looks like one that hangs. */
  tellStop({ workerGrace, store }: Pick<Settings, "workerGrace" | "store">): void {
    const count = this.#process.handlersAtWork;
    if (count === 0) return;
    const fate = store === "memory:" ? "is lost: it is in memory only" : "goes on at the next start";
    this.#call.terminal.out(
      `\nstopping: waits up to ${workerGrace} s for ${count === 1 ? "1 handler" : `${count} handlers`}. ` +
        `Ctrl-C again stops now. What is not done by then ${fate}.\n`,
    );
  }

  watch(): () => void {
    const { terminal } = this.#call;
    const { files, modules } = this.#project;
    const all = [...files, ...modules];
    if (all.length === 0) {
      terminal.out("\nthis was the built-in sample; make your own: millrace init hello\n");
      return () => undefined;
    }
    const watching = new FileWatch((saved) => void this.#saved(saved, watching));
    watching.add([...all.map((file) => this.#pathOf(file)), ...projectModules.files]);
    const stopKeys = this.#listenToKeys();
    terminal.out(
      `\nwatching ${all.join(", ")} – save to run again${terminal.isInteractive ? ", press ? for keys" : ""}\n`,
    );
    return () => {
      watching.close();
      stopKeys();
    };
  }

  #pathOf(file: string): string {
    return resolve(this.#call.terminal.directory, file);
  }

  async #saved(saved: readonly string[], watching: FileWatch): Promise<void> {
    const { files, modules } = this.#project;
    const isConcerned = (file: string): boolean => {
      const path = this.#pathOf(file);
      return saved.includes(path) || projectModules.dependsOn(path, saved);
    };
    // Before they run: what is imported by then may change meanwhile.
    const concerned = files.filter(isConcerned);
    if (modules.some(isConcerned)) {
      await this.#try(async () => this.#user.addModules(modules, this.#call.terminal.directory));
      await this.#process.refreshHandlers();
      await this.runAll(files);
    } else await this.runAll(concerned);
    watching.add(projectModules.files);
  }

  async #runFile(file: string): Promise<void> {
    const { terminal } = this.#call;
    await this.#try(async () => {
      if (!isModule(file)) return this.#run({ text: await definitionText(terminal, file) });
      for (const parts of await workflowsOfModule(terminal.directory, file)) {
        this.#user.addWorkflow(parts);
        await this.#process.refreshHandlers();
        await this.#run({ file, parts });
      }
    });
  }

  async #run(runnable: Runnable): Promise<void> {
    await this.#try(async () => {
      const { input, allowMissing } = this.#project;
      const { service } = this.#process;
      const id = await beginExecution(service, runnable, { input, allowMissing });
      await this.#follow(id);
    });
  }

  /** Until it is over, or waits for somebody: whoever writes a workflow wants the next save to run at once. */
  async #follow(id: string): Promise<void> {
    const { terminal } = this.#call;
    const source = localSource(this.#process.service);
    for await (const event of source.events(id, 0, terminal.interrupts())) {
      const transition = transitionOf(event);
      const isReview = transition?.reason === "review" && transition.status === "WAITING";
      const isSignal = transition?.reason === "signal" && transition.status === "WAITING";
      if (!isReview && !isSignal) continue;
      terminal.out(
        `  ${transition.node} waits for ${isReview ? "a person: millrace reviews" : `a signal: millrace signal ${id} NAME`}\n`,
      );
      void this.#later(id, event.seq);
      return;
    }
    await this.#tell(id);
  }

  async #later(id: string, after: number): Promise<void> {
    const source = localSource(this.#process.service);
    for await (const _ of source.events(id, after, this.#call.terminal.interrupts()));
    await this.#tell(id).catch(() => undefined);
  }

  async #tell(id: string): Promise<void> {
    const execution = await localSource(this.#process.service).execution(id);
    if (!isOver(execution.status)) return;
    const number = (this.#counts.get(execution.workflow) ?? 0) + 1;
    this.#counts.set(execution.workflow, number);
    this.#call.terminal.out(runSummary(execution, number, this.#url, this.#call.terminal));
  }

  /** What is wrong with a file is told, and mended by its next save. */
  async #try(act: () => Promise<void>): Promise<void> {
    try {
      await act();
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      const { lines = [], hint } = error instanceof Failure ? error : { hint: undefined };
      const more = [...lines, ...(hint === undefined ? [] : [`hint: ${hint}`])];
      this.#call.terminal.out(harmless([`  ${error.message}`, ...more.map((line) => `    ${line}`), ""].join("\n")));
    }
  }

  #listenToKeys(): () => void {
    const { terminal } = this.#call;
    const { stdin } = process;
    if (!terminal.isInteractive) return () => undefined;
    stdin.setRawMode(true);
    stdin.resume();
    stdin.setEncoding("utf8");
    const listen = (key: string): void => {
      if (key === "r") void this.runAll(this.#project.files);
      else if (key === "q" || key === "\u0003") process.kill(process.pid, "SIGINT");
      else if (key === "?") terminal.out("  r  run again\n  q  quit\n");
    };
    stdin.on("data", listen);
    return () => {
      stdin.off("data", listen);
      stdin.setRawMode(false);
      stdin.pause();
    };
  }
}
