/**
 * Every code that a user can meet, about definitions, JSON, YAML, templates, running nodes and requests, with its sentence.
 *
 * A message says what is wrong; where it is wrong travels beside it as a JSON pointer, what to do about it as a hint.
 * Codes are a promise to clients: never rename one.
 */
export const ERRORS = {
  // Reading: the text is not a document we can look at.
  INVALID_JSON: {
    kind: "malformed",
    message: ({ format, reason }: { format: "JSON" | "YAML"; reason: string }): string =>
      `This is not valid ${format}: ${reason}.`,
  },
  DUPLICATE_KEY: {
    kind: "malformed",
    message: ({ key }: { key: string }): string => `The key ${quote(key)} is written twice in one object.`,
  },
  JSON_TOO_DEEP: {
    kind: "malformed",
    message: ({ limit }: { limit: number }): string => `The document is nested deeper than ${limit} levels.`,
  },
  FORBIDDEN_KEY: {
    kind: "malformed",
    message: ({ key }: { key: string }): string => `The key ${quote(key)} is not allowed in a definition.`,
  },
  YAML_UNSAFE: {
    kind: "malformed",
    message: ({ reason }: { reason: string }): string => `This YAML is not accepted: ${reason}.`,
  },
  PAYLOAD_TOO_LARGE: {
    kind: "tooLarge",
    message: ({ what, limitBytes }: { what: string; limitBytes: number }): string =>
      `${what} is larger than ${limitBytes / 1_048_576} MiB.`,
  },

  // Definitions: the document is readable, but is not a workflow that can run.
  INVALID_DEFINITION: {
    kind: "invalid",
    message: ({ count }: { count: number }): string =>
      `The definition has ${count === 1 ? "one problem" : `${count} problems`}; nothing was stored.`,
  },
  EMPTY_WORKFLOW: { kind: "invalid", message: (): string => "The workflow has no nodes." },
  DUPLICATE_NODE_ID: {
    kind: "invalid",
    message: ({ id, first }: { id: string; first: string }): string => `${quote(id)} is already the id of ${first}.`,
  },
  INVALID_NODE_ID: {
    kind: "invalid",
    message: ({ reason }: { reason: string }): string => `${reason}.`,
  },
  RESERVED_ID: {
    kind: "invalid",
    message: ({ id, reason }: { id: string; reason: string }): string =>
      `${quote(id)} cannot be the id of a node: ${reason}.`,
  },
  INVALID_NAME: {
    kind: "invalid",
    message: ({ field, reason }: { field: string; reason: string }): string => `${quote(field)} ${reason}.`,
  },
  UNKNOWN_FIELD: {
    // 400 in the body of a request, and one of the errors of a 422 in a definition.
    kind: "malformed",
    message: ({ field, where }: { field: string; where: string }): string => `${where} has no field ${quote(field)}.`,
  },
  REPEATED_FIELD: {
    kind: "invalid",
    message: ({ field, same }: { field: string; same: string }): string =>
      `${quote(field)} and ${quote(same)} mean the same and are both given.`,
  },
  INVALID_TYPE: {
    kind: "invalid",
    message: ({ field, expected, got }: { field: string; expected: string; got: string }): string =>
      `${quote(field)} must be ${expected}, not ${got}.`,
  },
  UNKNOWN_DEPENDENCY: {
    kind: "invalid",
    message: ({ id, dependency }: { id: string; dependency: string }): string =>
      `${quote(id)} depends on ${quote(dependency)}, which is not a node.`,
  },
  SELF_DEPENDENCY: {
    kind: "invalid",
    message: ({ id }: { id: string }): string => `${quote(id)} depends on itself.`,
  },
  CYCLE_DETECTED: {
    kind: "invalid",
    message: ({ path }: { path: readonly string[] }): string =>
      `Nodes depend on each other in a circle: ${path.join(" → ")}.`,
  },
  ORPHAN_STEPS: {
    kind: "invalid",
    message: ({ ids, more }: { ids: readonly string[]; more: number }): string =>
      `Never reached, because they come after a circle: ${ids.map(quote).join(", ")}${more > 0 ? ` and ${more} more` : ""}.`,
  },
  UNKNOWN_HANDLER: {
    kind: "invalid",
    message: ({ id, handler }: { id: string; handler: string | undefined }): string =>
      handler === undefined
        ? `${quote(id)} has no handler.`
        : `No worker and no built-in node provides ${quote(handler)}.`,
  },
  CONFIG_INVALID: {
    kind: "invalid",
    message: ({ id, reason }: { id: string; reason: string }): string =>
      id === "" ? `${reason}.` : `The config of ${quote(id)} does not fit: ${reason}.`,
  },
  INVALID_TIMEOUT: {
    kind: "invalid",
    message: ({ field, reason }: { field: string; reason: string }): string => `${quote(field)} ${reason}.`,
  },
  INVALID_RETRY_POLICY: {
    kind: "invalid",
    message: ({ field, reason }: { field: string; reason: string }): string => `${quote(field)} ${reason}.`,
  },
  INVALID_JOIN: {
    kind: "invalid",
    message: ({ reason }: { reason: string }): string => `${quote("join")} ${reason}.`,
  },
  NUMBER_OUT_OF_RANGE: {
    kind: "invalid",
    message: ({ field, reason }: { field: string; reason: string }): string => `${quote(field)} ${reason}.`,
  },
  TOO_MANY_NODES: {
    kind: "invalid",
    message: ({ count, limit }: { count: number; limit: number }): string =>
      `The workflow has ${count} nodes; at most ${limit} are allowed.`,
  },
  TOO_MANY_EDGES: {
    kind: "invalid",
    message: ({ count, limit }: { count: number; limit: number }): string =>
      `The workflow has ${count} dependencies; at most ${limit} are allowed.`,
  },

  // Templates and conditions, checked at submit. The expression module words its own problems.
  TEMPLATE_SYNTAX: { kind: "invalid", message: ({ reason }: { reason: string }): string => reason },
  TEMPLATE_FORBIDDEN_PATH: { kind: "invalid", message: ({ reason }: { reason: string }): string => reason },
  EXPRESSION_TOO_COMPLEX: { kind: "invalid", message: ({ reason }: { reason: string }): string => reason },
  EXPRESSION_FORBIDDEN: { kind: "invalid", message: ({ reason }: { reason: string }): string => reason },
  TEMPLATE_UNKNOWN_NODE: { kind: "invalid", message: ({ reason }: { reason: string }): string => reason },
  TEMPLATE_REF_NOT_ANCESTOR: {
    kind: "invalid",
    message: ({ id, reference }: { id: string; reference: string }): string =>
      id === reference
        ? `${quote(id)} refers to its own output.`
        : `${quote(id)} refers to ${quote(reference)}, which does not come before it.`,
  },
  TEMPLATE_UNKNOWN_FIELD: {
    kind: "invalid",
    message: ({ reference, field }: { reference: string; field: string }): string =>
      `The output of ${quote(reference)} has no field ${quote(field)}.`,
  },

  // Warnings: the workflow is accepted, but probably does not do what was meant.
  DUPLICATE_DEPENDENCY: {
    kind: "warning",
    message: ({ id, dependency }: { id: string; dependency: string }): string =>
      `${quote(id)} lists ${quote(dependency)} twice; it counts once.`,
  },
  TEMPLATE_MAYBE_SKIPPED: {
    kind: "warning",
    message: ({ id, reference }: { id: string; reference: string }): string =>
      `${quote(id)} reads ${quote(reference)}, which may have no output when ${quote(id)} runs.`,
  },
  TEMPLATE_NOT_CHECKED: {
    kind: "warning",
    message: ({ id, reference }: { id: string; reference: string }): string =>
      `Whether ${quote(reference)} comes before ${quote(id)} was not checked: the graph has too many distant references.`,
  },
  ROUTE_WITHOUT_ELSE: {
    kind: "warning",
    message: ({ id }: { id: string }): string =>
      `${quote(id)} has no "else": if no route fits, all its targets are skipped.`,
  },
  WAIT_EXCEEDS_TIMEOUT: {
    kind: "warning",
    message: ({
      id,
      waitSeconds,
      timeoutSeconds,
    }: {
      id: string;
      waitSeconds: number;
      timeoutSeconds: number;
    }): string => `${quote(id)} may wait ${waitSeconds} s, but the workflow ends after ${timeoutSeconds} s.`,
  },
  UNNAMED: {
    kind: "warning",
    message: ({ name }: { name: string }): string => `The workflow has no name; it is stored as ${quote(name)}.`,
  },
  IGNORED_FIELD: {
    kind: "warning",
    message: ({ field }: { field: string }): string => `${quote(field)} has no effect and is not stored.`,
  },
  LABEL_NOT_USED: {
    kind: "warning",
    message: ({ label, reason }: { label: string; reason: string }): string =>
      `Executions do not get the label ${quote(label)}: ${reason}.`,
  },
  FIELD_WITHOUT_EFFECT: {
    kind: "warning",
    message: ({ id, field, runs }: { id: string; field: string; runs: string }): string =>
      `${quote(field)} has no effect on ${quote(id)}: the engine runs ${runs} itself.`,
  },

  // Run time: why a node or an execution failed.
  TEMPLATE_UNRESOLVED: { kind: "failed", message: ({ reason }: { reason: string }): string => reason },
  RESOLVED_INPUT_TOO_LARGE: { kind: "failed", message: ({ reason }: { reason: string }): string => reason },
  CONDITION_ERROR: { kind: "failed", message: ({ reason }: { reason: string }): string => reason },
  EXPRESSION_BUDGET_EXCEEDED: { kind: "failed", message: ({ reason }: { reason: string }): string => reason },
  TIMEOUT: {
    kind: "failed",
    message: ({ seconds }: { seconds: number }): string => `The handler did not finish within ${seconds} s.`,
  },
  QUEUE_TIMEOUT: {
    kind: "failed",
    message: ({ seconds }: { seconds: number }): string => `No worker took the task within ${seconds} s.`,
  },
  JOIN_TIMEOUT: {
    kind: "failed",
    message: ({ seconds, missing }: { seconds: number; missing: readonly string[] }): string =>
      `${seconds} s after the first parent had finished, these had not: ${missing.join(", ")}.`,
  },
  WORKFLOW_TIMEOUT: {
    kind: "failed",
    message: ({ seconds }: { seconds: number }): string => `The execution did not finish within ${seconds} s.`,
  },
  POISON_TASK: {
    kind: "failed",
    message: ({ deliveries }: { deliveries: number }): string =>
      `${deliveries} workers in a row were lost while they ran this task.`,
  },
  CONCURRENCY_LIMIT: {
    kind: "failed",
    message: (): string => "As many as may run at a time do, and it was not to wait.",
  },
  BUDGET_EXCEEDED: {
    kind: "failed",
    message: ({ budget }: { budget: string }): string =>
      `What is left of the budget ${quote(budget)} is not enough. Raise it with POST /v1/limits/NAME/override, and retry.`,
  },
  EGRESS_BLOCKED: {
    kind: "failed",
    message: ({ host }: { host: string }): string => `Calls to ${quote(host)} are not allowed.`,
  },
  RESPONSE_TOO_LARGE: {
    kind: "failed",
    message: ({ limitBytes }: { limitBytes: number }): string => `The answer is larger than ${limitBytes} bytes.`,
  },
  CHILD_FAILED: {
    kind: "failed",
    message: ({ executionId, status }: { executionId: string; status: string }): string =>
      `The child execution ${executionId} ended ${status}.`,
  },
  REVIEW_EXPIRED: { kind: "failed", message: (): string => "Nobody decided before the review was due." },
  SIGNAL_TIMEOUT: {
    kind: "failed",
    message: ({ signal }: { signal: string }): string => `The signal ${quote(signal)} did not come in time.`,
  },
  REPEAT_EXHAUSTED: {
    kind: "failed",
    message: ({ max }: { max: number }): string => `"until" was still false after ${max} rounds.`,
  },
  MAP_ITEMS_INVALID: {
    kind: "failed",
    message: ({ got }: { got: string }): string => `"items" must give an array, not ${got}.`,
  },
  MAP_TOO_LARGE: {
    kind: "failed",
    message: ({ count, limit }: { count: number; limit: number }): string =>
      `"items" has ${count} entries; at most ${limit} are allowed. Use a batch for more.`,
  },
  SETTING_MISSING: {
    kind: "failed",
    message: ({ handler, setting }: { handler: string; setting: string }): string =>
      `${handler} needs ${setting}, which is not set on this worker.`,
  },
  PACKAGE_MISSING: {
    kind: "failed",
    message: ({ handler, packages }: { handler: string; packages: readonly string[] }): string =>
      `${handler} needs ${packages.join(" and ")}, which this worker does not have: npm i ${packages.join(" ")}`,
  },
  PATH_FORBIDDEN: {
    kind: "failed",
    message: ({ path, reason }: { path: string; reason: string }): string => `${quote(path)} ${reason}.`,
  },
  FILE_NOT_FOUND: {
    kind: "failed",
    message: ({ path }: { path: string }): string => `There is no file ${quote(path)}.`,
  },
  FILE_TOO_LARGE: {
    kind: "failed",
    message: ({ path, limitBytes }: { path: string; limitBytes: number }): string =>
      `${quote(path)} is larger than ${limitBytes} bytes.`,
  },
  FILE_EXISTS: {
    kind: "failed",
    message: ({ path }: { path: string }): string => `${quote(path)} is there already, with another content.`,
  },
  DOCUMENT_INVALID: {
    kind: "failed",
    message: ({ what, reason }: { what: string; reason: string }): string =>
      `This is not ${what} that can be read: ${reason}.`,
  },
  FIXTURES_INVALID: {
    kind: "failed",
    message: ({ file, reason }: { file: string; reason: string }): string =>
      `The fixtures in ${quote(file)} cannot be used: ${reason}.`,
  },
  AUDIT_BROKEN: {
    kind: "failed",
    message: ({ file, line, reason }: { file: string; line: number; reason: string }): string =>
      `The audit log ${quote(file)} is broken at line ${line}: ${reason}.`,
  },
  HANDLER_ERROR: { kind: "failed", message: ({ reason }: { reason: string }): string => reason },
  INPUT_INVALID: {
    kind: "invalid",
    message: ({ reason }: { reason: string }): string =>
      `The input does not fit the workflow's input_schema: ${reason}.`,
  },
  OUTPUT_INVALID: {
    kind: "invalid",
    message: ({ reason }: { reason: string }): string => `The output cannot be stored: ${reason}.`,
  },
  OUTPUT_TOO_LARGE: {
    kind: "tooLarge",
    message: ({ limitBytes }: { limitBytes: number }): string => `The output is larger than ${limitBytes} bytes.`,
  },

  // Answers: what somebody asked for cannot be done, or not now.
  BAD_REQUEST: { kind: "malformed", message: ({ reason }: { reason: string }): string => `${reason}.` },
  HEADERS_TOO_LARGE: { kind: "tooLarge", message: (): string => "The address and headers are too long." },
  REQUEST_TIMEOUT: { kind: "malformed", message: (): string => "The request did not arrive in time." },
  NOT_FOUND: {
    kind: "notFound",
    message: ({ what, id }: { what: string; id: string }): string => `There is no ${what} ${quote(id)}.`,
  },
  METHOD_NOT_ALLOWED: {
    kind: "notAllowed",
    message: ({ method, allowed }: { method: string; allowed: readonly string[] }): string =>
      `${method} is not possible here; ${allowed.join(", ")} is.`,
  },
  UNSUPPORTED_MEDIA_TYPE: { kind: "unsupported", message: ({ reason }: { reason: string }): string => `${reason}.` },
  INVALID_QUERY: {
    kind: "malformed",
    message: ({ field, reason }: { field: string; reason: string }): string => `${quote(field)} ${reason}.`,
  },
  INVALID_CURSOR: {
    kind: "malformed",
    message: (): string => "This cursor was not given out for this list and these filters.",
  },
  CREDENTIAL_IN_URL: {
    kind: "malformed",
    message: ({ field }: { field: string }): string =>
      `${quote(field)} looks like a credential: addresses end up in logs. Send "Authorization: Bearer KEY".`,
  },
  UNAUTHENTICATED: {
    kind: "unauthenticated",
    message: (): string => 'A valid key is needed: "Authorization: Bearer KEY".',
  },
  FORBIDDEN: { kind: "forbidden", message: ({ reason }: { reason: string }): string => `${reason}.` },
  TASK_TOKEN_INVALID: { kind: "forbidden", message: (): string => "This token names no task that was given out." },
  IDEMPOTENCY_KEY_REUSED: {
    kind: "invalid",
    message: (): string => "This Idempotency-Key was used before, for a request with another body.",
  },
  REVIEW_SAME_PERSON: {
    kind: "conflict",
    message: (): string => "This review needs two people, and the same key has decided it already: another one has to.",
  },
  REVIEW_INVALID: {
    kind: "invalid",
    message: ({ reason }: { reason: string }): string => `The data does not fit the form of the review: ${reason}.`,
  },
  ALREADY_RUNNING: { kind: "conflict", message: ({ id }: Named): string => `The execution ${id} is running already.` },
  ALREADY_TERMINAL: { kind: "conflict", message: ({ id }: Named): string => `The execution ${id} is over.` },
  NOT_RETRYABLE: {
    kind: "conflict",
    message: ({ id }: Named): string => `Nothing failed in the execution ${id}. Say "from" to run a part again.`,
  },
  NOT_PAUSED: { kind: "conflict", message: ({ id }: Named): string => `The execution ${id} is not paused.` },
  NOT_RUNNING: { kind: "conflict", message: ({ id }: Named): string => `The execution ${id} is not running.` },
  QUARANTINED: {
    kind: "conflict",
    message: ({ id }: Named): string => `The execution ${id} could not be decided, and is in quarantine.`,
  },
  NOT_QUARANTINED: {
    kind: "conflict",
    message: ({ id }: Named): string => `The execution ${id} is not in quarantine.`,
  },
  EXECUTION_OPEN: { kind: "conflict", message: ({ id }: Named): string => `The execution ${id} is not over yet.` },
  INPUT_FIXED: {
    kind: "conflict",
    message: ({ id }: Named): string =>
      `The execution ${id} has its input already. To change it, retry with "input_params".`,
  },
  STALE_ATTEMPT: {
    kind: "conflict",
    message: (): string => "This attempt or delivery counts no more; its result changes nothing.",
  },
  REVIEW_CLOSED: {
    kind: "conflict",
    message: (): string => "This review has been decided, or is not needed any more.",
  },
  ALREADY_REPLAYED: {
    kind: "conflict",
    message: (): string => "This dead letter was replayed before, or its node was run again by a retry.",
  },
  RATE_LIMITED: {
    kind: "rateLimited",
    message: ({ reason }: { reason: string }): string => `${reason}.`,
  },
  OVERLOADED: {
    kind: "unavailable",
    message: (): string =>
      "Too much is waiting to be decided, or the store has no room for more. Try again a little later.",
  },
  STORE_UNAVAILABLE: {
    kind: "unavailable",
    message: (): string => "The store does not answer. Try again a little later.",
  },
  STORE_FULL: { kind: "unavailable", message: (): string => "The store has no room for anything new." },
  NO_OWNER: {
    kind: "unavailable",
    message: (): string =>
      "No engine decided this in time; it may still be applied. To repeat it is safe with the same Idempotency-Key: " +
      "without one, a repeated trigger may find the execution failed and is then a retry.",
  },
  NOT_READY: { kind: "unavailable", message: ({ reason }: { reason: string }): string => `${reason}.` },
  EXECUTION_UNREADABLE: {
    kind: "unavailable",
    message: ({ id }: Named): string => `The history of the execution ${id} cannot be read by this release.`,
  },
  PORT_IN_USE: {
    kind: "unavailable",
    message: ({ port }: { port: number }): string =>
      `Port ${port} is in use: choose another, or 0 for any that is free.`,
  },
  INTERNAL: {
    kind: "internal",
    message: ({ incident }: { incident: string }): string =>
      `Something went wrong here, not with the request. The log tells more about ${incident}.`,
  },
  NO_LIVE_WORKER: {
    kind: "warning",
    message: ({ handler }: { handler: string }): string =>
      `No worker that is alive now serves ${quote(handler)}; its nodes wait until one does.`,
  },
} as const;

interface Named {
  readonly id: string;
}

/** api/ maps kinds to HTTP statuses, cli/ to exit codes. `failed` is a node's or execution's fate, not an answer. */
export type ErrorKind =
  | "malformed"
  | "invalid"
  | "tooLarge"
  | "conflict"
  | "notFound"
  | "notAllowed"
  | "unsupported"
  | "unauthenticated"
  | "forbidden"
  | "rateLimited"
  | "unavailable"
  | "internal"
  | "warning"
  | "failed";

export type ErrorCode = keyof typeof ERRORS;

/** What the sentence of a code needs to know. */
export type ErrorDetails<Code extends ErrorCode> =
  Parameters<(typeof ERRORS)[Code]["message"]> extends [infer Details] ? Details : EmptyDetails;

/** Of a code whose sentence is always the same. */
export type EmptyDetails = Readonly<Record<string, never>>;

/** The sentence of a code. */
export function errorMessage<Code extends ErrorCode>(code: Code, details: ErrorDetails<Code>): string {
  // The table's type ties each code to its details; TypeScript cannot see that through a union of functions.
  const { message } = ERRORS[code] as { readonly message: (details: ErrorDetails<Code>) => string };
  return message(details);
}

export function errorKind(code: ErrorCode): ErrorKind {
  return ERRORS[code].kind;
}

/** A name as it stands in a message: quoted, without control characters, and never a page long. */
export function quote(name: string): string {
  return JSON.stringify(name.length > 80 ? `${name.slice(0, 77)}…` : name);
}
