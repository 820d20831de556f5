import type { Json } from "../json/json.ts";
import type { WorkflowParts } from "../sdk/workflow.ts";
import type { Call } from "./call.ts";
import { definitionText, type DefinitionText, moduleText } from "./definition-file.ts";
import { Failure } from "./failure.ts";
import { type Fault, faultLines } from "./problems-text.ts";
import { type Sent, type Server, withQuery } from "./server.ts";

/** The definition in a file, for a server that has to know the workflows that it calls, too. */
export async function definitionFor(call: Call, server: Server, file: string): Promise<DefinitionText> {
  const text = await definitionText(call.terminal, file);
  if (text.parts === undefined || text.parts.children.length === 0) return text;
  const { settings } = await call.settings();
  const path = withQuery("/v1/workflows", {
    allow_missing_handlers: settings.allowMissingHandlers ? "true" : undefined,
  });
  return withStoredChildren(text.file, text.parts);

  /** Those that it calls are stored before it, and it names the versions that came of that. */
  async function withStoredChildren(name: string, parts: WorkflowParts): Promise<DefinitionText> {
    const versions = new Map<WorkflowParts, string>();
    for (const child of parts.children) {
      const source = await withStoredChildren(name, child);
      const stored = await server.post<{ readonly workflow_definition_id: string }>(path, { source });
      versions.set(child, stored.workflow_definition_id);
    }
    return moduleText(name, parts, (child) => versions.get(child)!);
  }
}

export interface Submission {
  readonly start: boolean;
  readonly allowMissing: boolean;
  readonly input: Json | undefined;
  readonly labels: Readonly<Record<string, string>> | undefined;
  readonly key: string | undefined;
}

/** Submits a definition, and tells what is wrong with it by the lines of its file. */
export async function submit<Answer>(
  server: Server,
  text: DefinitionText,
  { start, allowMissing, input, labels, key }: Submission,
): Promise<Answer> {
  const query = { allow_missing_handlers: allowMissing ? "true" : undefined };
  const path = withQuery("/v1/workflow", { start: start ? "true" : undefined, ...query });
  const sent = await submission(text, input, labels);
  try {
    return await server.post<Answer>(path, { ...sent, key });
  } catch (error) {
    const isUnplaced = sent.body !== undefined && error instanceof Failure && error.code === "INVALID_DEFINITION";
    if (!isUnplaced) throw error;
    const checked = await server
      .post<{ readonly errors: readonly Fault[] }>(withQuery("/v1/validate", query), { source: text })
      .catch(() => undefined);
    // Had the server changed its mind in between, the first answer would be the one that counts.
    if (checked === undefined || checked.errors.length === 0) throw error;
    const { exit, message, code, hint } = error;
    throw new Failure(exit, message, { code, hint, lines: faultLines(checked.errors) });
  }
}

/**
 * A definition as it is sent: as it is written, so that the server can say where something is wrong; only together with
 * an input or labels it has to become one document, whose lines are not those of the file.
 */
async function submission(
  { source, format }: DefinitionText,
  input: Json | undefined,
  labels: Readonly<Record<string, string>> | undefined,
): Promise<Sent> {
  const isBare = input === undefined && labels === undefined;
  const definition = isBare ? undefined : await faultless(source, format);
  // What cannot be read, or would become something else on the way, is sent as it is: the server says where the fault is.
  if (definition === undefined) return { source: { source, format } };
  const beside = { ...(input !== undefined && { input_params: input }), ...(labels !== undefined && { labels }) };
  return { body: { definition, ...beside } };
}

async function faultless(source: Uint8Array | string, format: "json" | "yaml"): Promise<Json | undefined> {
  let text: string;
  try {
    text =
      typeof source === "string" ? source : new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(source);
  } catch {
    return undefined;
  }
  const read =
    format === "yaml"
      ? (await import("../json/read-yaml.ts")).readYaml
      : (await import("../json/read-json.ts")).readJson;
  const { value, faults } = read(text);
  return faults.length > 0 ? undefined : value;
}
