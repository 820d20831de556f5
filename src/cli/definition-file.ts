import { readFileSync, statSync } from "node:fs";
import { extname, resolve } from "node:path";
import type { HandlerCatalogue } from "../definition/handlers.ts";
import type { DefinitionReport } from "../definition/report.ts";
import type { Workflow } from "../definition/workflow.ts";
import type { WorkflowParts } from "../sdk/workflow.ts";
import { EXIT } from "./exit-code.ts";
import { Failure } from "./failure.ts";
import { shownProblems } from "./problems-text.ts";
import type { Terminal } from "./call.ts";

/** A definition as it was found: its text, and in which language it is written. */
export interface DefinitionText {
  /** As it was named. */
  readonly file: string;
  readonly source: Uint8Array | string;
  readonly format: "json" | "yaml";
  /** What it was made from, if a module exports it: its functions are handlers, and its lines are not those of the text. */
  readonly parts?: WorkflowParts;
}

export function isModule(file: string): boolean {
  return /\.[mc]?[jt]s$/.test(file);
}

/** Reads a definition from a file, or from stdin if it is named `-`. Of several that a module exports, the first. */
export async function definitionText(terminal: Terminal, file: string): Promise<DefinitionText> {
  const [first] = await definitionTexts(terminal, file);
  return first!;
}

/** All definitions of a file: a module may export several. */
export async function definitionTexts(terminal: Terminal, file: string): Promise<readonly DefinitionText[]> {
  if (!isModule(file)) return [await writtenText(terminal, file)];
  const { workflowsOfModule } = await import("./project/workflow-module.ts");
  const workflows = await workflowsOfModule(terminal.directory, file);
  return workflows.map((parts) => moduleText(file, parts, (child) => child.hash));
}

/** @param versionOf which version of a workflow that it calls is meant */
export function moduleText(
  file: string,
  parts: WorkflowParts,
  versionOf: (child: WorkflowParts) => string,
): DefinitionText {
  return { file, source: JSON.stringify(parts.definition(versionOf)), format: "json", parts };
}

async function writtenText(terminal: Terminal, file: string): Promise<DefinitionText> {
  if (file === "-") {
    const source = await terminal.readInput();
    return { file: "stdin", source, format: formatOf("", source) };
  }
  const path = resolve(terminal.directory, file);
  try {
    const source = readFileSync(path);
    return { file, source, format: formatOf(extname(file), source.subarray(0, 1024).toString("utf8")) };
  } catch (error) {
    throw unreadable(file, error);
  }
}

export function isFile(terminal: Terminal, name: string): boolean {
  return name === "-" || statSync(resolve(terminal.directory, name), { throwIfNoEntry: false })?.isFile() === true;
}

/** The workflow of a text that has to be good; otherwise all its problems end the command. */
export async function goodDefinition(text: DefinitionText, handlers: HandlerCatalogue): Promise<Workflow> {
  const report = await checkText(text, handlers);
  if (report.workflow !== undefined) return report.workflow;
  throw invalidDefinition(text.file, report);
}

/** Checks a definition. What checks it is loaded only here, and the parser of YAML only for YAML: most commands need neither. */
export async function checkText(
  { source, format, parts }: DefinitionText,
  handlers: HandlerCatalogue,
): Promise<DefinitionReport> {
  if (format === "yaml") {
    const { readDefinition } = await import("../definition/read.ts");
    return readDefinition(source, { format, handlers });
  }
  const { readJsonDefinition } = await import("../definition/report.ts");
  if (parts === undefined) return readJsonDefinition(source, { handlers });
  return readJsonDefinition(source, { handlers: withFunctions(handlers, parts), positions: false });
}

/** The functions of a module are there wherever it runs. */
export function withFunctions(handlers: HandlerCatalogue, { functions }: WorkflowParts): HandlerCatalogue {
  return {
    ...handlers,
    get: (name) => (functions.has(name) ? { engine: false } : handlers.get(name)),
    names: () => [...functions.keys(), ...handlers.names()],
  };
}

function invalidDefinition(file: string, report: DefinitionReport): Failure {
  const [first, ...lines] = shownProblems(file, report);
  return new Failure(EXIT.invalid, first!, { lines, code: report.failure });
}

function formatOf(extension: string, head: string): "json" | "yaml" {
  if (extension === ".json") return "json";
  if (extension === ".yaml" || extension === ".yml") return "yaml";
  return /^[\s\uFEFF]*[[{]/.test(head) ? "json" : "yaml";
}

/** Whether a name is meant for a file, though there is none. */
export function looksLikeFile(name: string): boolean {
  return /[/\\]|\.(json|ya?ml|[mc]?[jt]s)$/.test(name);
}

/** What is said of a name that was meant for a file. */
export function noFile(terminal: Terminal, name: string): Failure {
  return unreadable(name, { code: isFolder(resolve(terminal.directory, name)) ? "EISDIR" : "ENOENT" });
}

export function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

export function unreadable(file: string, error: unknown): Failure {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === "ENOENT") return new Failure(EXIT.notFound, `there is no file ${JSON.stringify(file)}.`);
  if (code === "EISDIR") return new Failure(EXIT.usage, `${JSON.stringify(file)} is a folder, not a file.`);
  return new Failure(EXIT.unreachable, `${JSON.stringify(file)} cannot be read: ${message}`);
}
