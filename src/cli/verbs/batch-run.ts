import { existsSync, rmSync } from "node:fs";
import { resolve } from "node:path";
import { BUILTIN_HANDLERS } from "../../definition/builtin-handlers.ts";
import { loadTableWriter } from "../../handlers/parquet-table.ts";
import { type BatchInput, type InputMark, openInput } from "../batch/batch-input.ts";
import { BatchLog, type BatchHead } from "../batch/batch-log.ts";
import { BatchProgress } from "../batch/batch-progress.ts";
import { type BatchSource, localBatches, serverBatches } from "../batch/batch-source.ts";
import { keepWritten, resultsTo } from "../batch/results-file.ts";
import { writeResultsTable } from "../batch/results-table.ts";
import { outcomeOf, runBatch } from "../batch/run-batch.ts";
import { countItems, sharing } from "../batch/segments.ts";
import { storeAddress } from "../../settings/store-address.ts";
import { isHandlerError } from "../../worker/handler.ts";
import { type Call, hasSwitch, option, type Verb } from "../call.ts";
import { isFile, isFolder, looksLikeFile, noFile } from "../definition-file.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { Failure } from "../failure.ts";
import { countOption, labelsOption } from "../given-values.ts";
import { printJson } from "../print.ts";
import { publishRunnable } from "../project/begin-execution.ts";
import { LiveHandlers } from "../project/live-handlers.ts";
import { modulesFor, runnableOf } from "../run-here.ts";
import { connect, isForServer, withQuery, workflowPath } from "../server.ts";
import type { ShownExplanation } from "../shapes.ts";
import { definitionFor } from "../submission.ts";
import { outliveForgottenPromises, startFailure, startProcess } from "../start-process.ts";
import { handlersOf } from "../waiting-in-vain.ts";
import { refuseVersion } from "./run.ts";

const MOST_SLOTS = 1_000;

/** Where a batch runs, and which workflow it runs there. */
interface Place {
  readonly source: BatchSource;
  readonly workflow: string;
  readonly version: string;
  readonly where: string;
  stop(): Promise<void>;
}

/** A file runs here, on the store of this project; a name, or with --server, --url or --context a file, on the server. */
export const verb: Verb = async (call) => {
  const [name] = call.args as [string];
  const { terminal } = call;
  if (isFile(terminal, name)) refuseVersion(call);
  else if (looksLikeFile(name)) throw noFile(terminal, name);
  // Before anything is touched: an option that cannot be read must not cost the results of a batch that has ended.
  const labels = labelsOption(call) ?? {};
  const output = await outputOf(call);
  const input = await openInput(call, output?.file);
  try {
    const total = await countItems(input.file, input.shown);
    const concurrency = countOption(call, "concurrency", 100, 4_000);
    const isHere = isFile(terminal, name) && !(await isForServer(call));
    const place = isHere ? await startHere(call, name, concurrency) : await connectThere(call, name);
    try {
      const { workflow, version } = place;
      const head = { workflow, version, input: input.mark, total, ...sharing(concurrency, total) };
      return await run(call, place, input, output, head, labels);
    } finally {
      await place.stop();
    }
  } finally {
    input.forget();
  }
};

/** Where results go: a file of lines, and what is made of it in the end. */
interface Output {
  readonly file: string;
  readonly lines: string;
  finish(): Promise<void>;
}

/** A name that ends in `.parquet` is a table, made in the end of the lines that are gathered beside it. */
async function outputOf(call: Call): Promise<Output | undefined> {
  const given = option(call, "output");
  if (given === undefined) return undefined;
  const file = resolve(call.terminal.directory, given);
  if (!file.endsWith(".parquet")) return { file, lines: file, finish: async () => undefined };
  const lines = `${file}.jsonl`;
  try {
    // Before anything runs: nobody wants to hear of it after a million items.
    const writer = await loadTableWriter("a batch with results in Parquet");
    return { file, lines, finish: () => writeResultsTable(writer, lines, file) };
  } catch (error) {
    throw isHandlerError(error) ? new Failure(EXIT.usage, error.message, { code: error.code }) : error;
  }
}

async function run(
  call: Call,
  place: Place,
  input: BatchInput,
  output: Output | undefined,
  wanted: Omit<BatchHead, "batch">,
  labels: Readonly<Record<string, string>>,
): Promise<ExitCode> {
  const { terminal } = call;
  const log = logOf(call, input, output, wanted);
  if (output !== undefined) {
    if (log.begun.length > 0) await keepWritten(output.lines, log.begun);
    else for (const file of [output.lines, output.file]) rmSync(file, { force: true });
  }
  const before = outcomeOf(log);
  const progress = new BatchProgress(terminal, log.head.total, before.completed + before.failed + before.cancelled);
  const results = resultsTo(call, output?.lines);
  const signal = terminal.interrupts();
  const { source } = place;
  let inVain: readonly ShownExplanation[];
  try {
    inVain = await runBatch({ file: input.file, log, source, results, progress, labels, signal });
  } finally {
    progress.end();
    await results.end();
  }
  if (inVain.length > 0) throw unserved(log.head.batch, inVain, input.canResume);
  const isLeft = signal.aborted && !log.isComplete;
  if (!isLeft) await output?.finish();
  return tell(
    call,
    log,
    isLeft ? `${place.where}.${input.canResume ? " The same command goes on with it." : ""}` : null,
  );
}

function unserved(batch: string, nodes: readonly ShownExplanation[], canResume: boolean): Failure {
  const what = `${batch} ends here: what is left of it would wait for ever, as nobody brings ${handlersOf(nodes)}.`;
  return new Failure(EXIT.failed, what, {
    code: "UNKNOWN_HANDLER",
    hint: `name the module that brings it: --handlers FILE${canResume ? "   and the same command goes on with it" : ""}`,
  });
}

/** A batch that was left unfinished goes on; one that is complete is begun anew, unless what failed is to be tried again. */
function logOf(
  call: Call,
  { log }: BatchInput,
  output: Output | undefined,
  wanted: Omit<BatchHead, "batch">,
): BatchLog {
  const { terminal } = call;
  const file = output === undefined ? log : `${output.file}.batch`;
  const again = hasSwitch(call, "retry-failed");
  const isFresh = hasSwitch(call, "fresh");
  const known = isFresh ? undefined : BatchLog.read(file);
  if (output !== undefined && isFolder(output.file)) throw noFile(terminal, option(call, "output")!);
  if (known === undefined && !isFresh && output !== undefined && existsSync(output.file)) {
    throw new Failure(EXIT.usage, `${option(call, "output")} is there already, and is of no batch.`, {
      hint: "name another file with --output, or write over it with --fresh",
    });
  }
  if (known?.isComplete === true && !again && output !== undefined && !sameInput(known.head.input, wanted.input)) {
    throw new Failure(
      EXIT.usage,
      `${option(call, "output")} has the results of another input, of the batch ${known.head.batch}.`,
      {
        hint: "name another file with --output, or write over it with --fresh",
      },
    );
  }
  if (known === undefined || (known.isComplete && !again)) {
    if (again) throw new Failure(EXIT.notFound, "there is no batch whose failed items could be tried again.");
    return BatchLog.begin(file, { batch: `b-${crypto.randomUUID()}`, ...wanted });
  }
  const { input, workflow, version, batch } = known.head;
  if (!sameInput(input, wanted.input)) {
    throw new Failure(EXIT.usage, `the input has changed since the batch ${batch} began.`, {
      hint: "begin anew with --fresh",
    });
  }
  if (workflow !== wanted.workflow || version !== wanted.version) {
    throw new Failure(EXIT.usage, `the workflow has changed since the batch ${batch} began.`, {
      hint: "begin anew with --fresh",
    });
  }
  if (again) {
    for (const begun of known.begun) {
      const { failed = 0, cancelled = 0 } = begun.outcome ?? {};
      if (failed + cancelled > 0) known.again(begun);
    }
  }
  const { lanes, each } = known.head;
  const isOther = option(call, "concurrency") !== undefined && lanes * each !== wanted.lanes * wanted.each;
  // Its parts were sent with what they may have under way, and have to be the same if they are sent again.
  const kept = isOther ? `, with ${lanes * each} items at a time as it began: --concurrency is for a new one` : "";
  terminal.err(`${again ? "retrying what failed of" : "resuming"} ${batch}${kept}\n`);
  return known;
}

function sameInput(one: InputMark, other: InputMark): boolean {
  return one.bytes === other.bytes && one.sha256 === other.sha256;
}

/** @param left what is to be said of a batch that was interrupted */
function tell(call: Call, log: BatchLog, left: string | null): ExitCode {
  const { terminal } = call;
  const { batch, total } = log.head;
  const sum = outcomeOf(log);
  if (left !== null) {
    terminal.err(`millrace: interrupted; ${left}\n`);
    return EXIT.interrupted;
  }
  const bad = sum.failed + sum.cancelled;
  if (call.json && option(call, "output") !== undefined) printJson(call, { batch, total, ...sum });
  else terminal.err(`${batch}: ${sum.completed} of ${total} completed${bad > 0 ? `, ${bad} did not` : ""}\n`);
  if (bad === 0) return EXIT.done;
  terminal.err("try those again with --retry-failed\n");
  return sum.completed === 0 ? EXIT.failed : EXIT.partial;
}

async function startHere(call: Call, file: string, concurrency: number): Promise<Place> {
  // What is under way at a time is what can run at a time, unless somebody has said how much this machine can take.
  const read = await call.settings({ logLevel: "warn", workerConcurrency: Math.min(concurrency, MOST_SLOTS) });
  const { settings } = read;
  const user = new LiveHandlers();
  const runnable = await runnableOf(call, file, user);
  try {
    await user.addModules(await modulesFor(call, settings, runnable), call.terminal.directory);
  } catch (error) {
    throw startFailure(error, settings.port);
  }
  const parts = { roles: ["engine", "worker"] as const, logTo: 2 as const, loopback: true, user };
  const { process, log } = await startProcess(call, read, parts);
  const { service } = process;
  const stopOutliving = outliveForgottenPromises(log);
  const stop = (): Promise<void> => process.stop().finally(stopOutliving);
  try {
    const { name, workflow_definition_id: version } = await publishRunnable(
      service,
      runnable,
      settings.allowMissingHandlers,
    );
    const address = storeAddress(settings);
    const isAlone = "kind" in address && (address.kind === "sqlite" || address.kind === "memory");
    const bringsNobody = (handler: string): boolean => !BUILTIN_HANDLERS.has(handler) && !user.handlers.has(handler);
    const source = localBatches(service, isAlone ? bringsNobody : undefined);
    return { source, workflow: name, version, where: "it stands still", stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function connectThere(call: Call, name: string): Promise<Place> {
  const server = await connect(call);
  const { settings } = await call.settings();
  const isHere = isFile(call.terminal, name);
  const path = withQuery("/v1/workflows", {
    allow_missing_handlers: settings.allowMissingHandlers ? "true" : undefined,
  });
  const stored = isHere
    ? await server.post<Stored>(path, { source: await definitionFor(call, server, name) })
    : await server.get<Stored>(workflowPath(name, option(call, "version")));
  const { name: workflow, workflow_definition_id: version } = stored;
  const where = "what was begun goes on there";
  return { source: serverBatches(server), workflow, version, where, stop: async () => undefined };
}

interface Stored {
  readonly name: string;
  readonly workflow_definition_id: string;
}
