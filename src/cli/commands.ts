import type { SettingName } from "../settings/declarations.ts";
import type { Verb } from "./call.ts";

export interface OptionSpec {
  readonly name: string;
  readonly short?: string;
  /** What it takes, for people. Without it the option is a switch. */
  readonly value?: string;
  readonly many?: boolean;
  readonly doc: string;
}

export interface CommandSpec {
  /** One or two words. */
  readonly name: string;
  /** Other ways to say the same. */
  readonly also: readonly string[];
  readonly group: Group;
  /** `<needed>`, `[optional]`, a trailing `…` takes several. */
  readonly args: readonly string[];
  readonly summary: string;
  readonly options: readonly OptionSpec[];
  /** Settings that may be given as flags. */
  readonly settings: readonly SettingName[];
  /** Loaded only when it is called: a help text needs no engine. */
  readonly load: () => Promise<{ readonly verb: Verb }>;
}

export type Group = "begin" | "author" | "server" | "start" | "look" | "act" | "people" | "letters" | "rest";

export const GROUP_TITLES: Readonly<Record<Group, string>> = {
  begin: "Begin",
  author: "Write workflows (no server needed)",
  server: "Processes",
  start: "Start executions",
  look: "Look",
  act: "Act",
  people: "Reviews",
  letters: "Dead letters",
  rest: "More",
};

/** Every command has these. */
export const COMMON_OPTIONS: readonly OptionSpec[] = [
  { name: "json", doc: "print JSON on stdout, one document or one line per item" },
  { name: "config", value: "FILE", doc: "a config file instead of millrace.config.*" },
  { name: "help", short: "h", doc: "this text" },
];

const INPUT: OptionSpec = { name: "input", short: "i", value: "JSON|@FILE|-", doc: "the input of the execution" };
const KEY: OptionSpec = {
  name: "key",
  value: "KEY",
  doc: "Idempotency-Key; repeating with the same key starts nothing twice",
};
const TIMEOUT: OptionSpec = {
  name: "timeout",
  value: "TIME",
  doc: "stop waiting after e.g. 30s or 5m; the execution goes on (exit 124)",
};
const NO_APPROVAL: OptionSpec = {
  name: "no-wait-approval",
  doc: "stop waiting when only a person can go on (exit 8)",
};
const LIMIT: OptionSpec = { name: "limit", value: "N", doc: "how many at most (default 50)" };
const STATUS: OptionSpec = { name: "status", value: "STATUS", doc: "only those in this state" };
const WORKFLOW: OptionSpec = { name: "workflow", value: "NAME", doc: "only those of this workflow" };
const SINCE: OptionSpec = { name: "since", value: "TIME", doc: "only those created then or later: 1h, 2d, or a date" };
const FOLLOW: OptionSpec = { name: "follow", short: "f", doc: "wait for more until the execution is over" };
const ALL: readonly OptionSpec[] = [
  { name: "all", doc: "all that the filters below find, instead of ids" },
  { name: "yes", doc: "do not ask (needed with --all off a terminal)" },
  STATUS,
  WORKFLOW,
  SINCE,
];
const CLIENT: readonly SettingName[] = ["url"];
const WORKER: readonly SettingName[] = [
  "workerConcurrency",
  "workerGrace",
  "handlers",
  "queues",
  "egressAllow",
  "mock",
];
const ENGINE: readonly SettingName[] = ["store", "retentionDays", "retentionCount", "allowMissingHandlers", "logLevel"];

export const COMMANDS: readonly CommandSpec[] = [
  {
    name: "init",
    also: [],
    group: "begin",
    args: ["[dir]"],
    summary: "Write a small project that runs: a workflow, its handlers, a test",
    options: [
      { name: "template", value: "NAME", doc: "typescript (default) or yaml" },
      { name: "force", doc: "write over files that are there" },
    ],
    settings: [],
    load: () => import("./verbs/init.ts"),
  },
  {
    name: "dev",
    also: [],
    group: "begin",
    args: ["[file…]"],
    summary: "Engine, worker, API and page in one process; runs the workflow, and again on every save",
    options: [
      { name: "ephemeral", doc: "keep everything in memory instead of .millrace/" },
      { name: "no-watch", doc: "run once, and do not look at the files again" },
      { name: "no-run", doc: "run nothing at the start" },
      INPUT,
    ],
    settings: ["host", "port", ...WORKER, ...ENGINE],
    load: () => import("./verbs/dev.ts"),
  },
  {
    name: "validate",
    also: [],
    group: "author",
    args: ["<file…>"],
    summary: "All problems of definitions, with place and hint",
    options: [{ name: "format", value: "text|json|sarif", doc: "how to print them" }],
    settings: ["allowMissingHandlers", "handlers"],
    load: () => import("./verbs/validate.ts"),
  },
  {
    name: "graph",
    also: [],
    group: "author",
    args: ["<file|workflow|execution>"],
    summary: "The graph as text or picture; of an execution with its states",
    options: [{ name: "format", value: "text|mermaid|dot|svg", doc: "text is the default" }],
    settings: [...CLIENT, "handlers"],
    load: () => import("./verbs/graph.ts"),
  },
  {
    name: "plan",
    also: [],
    group: "author",
    args: ["<file>"],
    summary: "Critical path, width, worst-case time, handlers that are missing",
    options: [],
    settings: ["handlers"],
    load: () => import("./verbs/plan.ts"),
  },
  {
    name: "test",
    also: [],
    group: "author",
    args: ["<file…>"],
    summary: "Replay exported executions offline on a virtual clock, and compare",
    options: [{ name: "definition", value: "FILE", doc: "replay with this definition instead of the exported one" }],
    settings: [],
    load: () => import("./verbs/test.ts"),
  },
  {
    name: "serve",
    also: ["server"],
    group: "server",
    args: [],
    summary: "API, engine and worker, together or apart by --roles",
    options: [],
    settings: ["host", "port", "roles", "environment", "ingressPerMinute", "archive", ...WORKER, ...ENGINE],
    load: () => import("./verbs/serve.ts"),
  },
  {
    name: "recover",
    also: [],
    group: "server",
    args: [],
    summary: "Rebuild a store that was lost from its archive; every engine has to be stopped",
    options: [
      { name: "from", value: "URL", doc: "the archive, postgres://… (default: MILLRACE_ARCHIVE)" },
      { name: "force", doc: "also into a store that is not empty: what it has stays as it is" },
    ],
    settings: ["store"],
    load: () => import("./verbs/recover.ts"),
  },
  {
    name: "worker",
    also: [],
    group: "server",
    args: [],
    summary: "A worker beside the engines of a shared store, or over the HTTP API of a server",
    options: [
      { name: "key", value: "KEY", doc: "the server's key; MILLRACE_API_KEY keeps it out of lists of processes" },
    ],
    settings: ["store", "url", "environment", "logLevel", ...WORKER],
    load: () => import("./verbs/worker.ts"),
  },
  {
    name: "run",
    also: [],
    group: "start",
    args: ["<file|workflow>"],
    summary: "Run a file here, without any server; or a stored workflow on the server",
    options: [
      INPUT,
      KEY,
      TIMEOUT,
      NO_APPROVAL,
      { name: "server", doc: "run a file on the server instead of here" },
      { name: "watch", doc: "wait for the end, also off a terminal" },
      { name: "no-watch", doc: "print the id and leave it to the server" },
    ],
    settings: [...CLIENT, ...WORKER, "allowMissingHandlers"],
    load: () => import("./verbs/run.ts"),
  },
  {
    name: "submit",
    also: [],
    group: "start",
    args: ["<file>"],
    summary: "Store a definition with an execution that waits to be triggered",
    options: [INPUT, KEY, { name: "start", doc: "start it at once" }],
    settings: [...CLIENT, "allowMissingHandlers"],
    load: () => import("./verbs/submit.ts"),
  },
  {
    name: "trigger",
    also: [],
    group: "start",
    args: ["<execution>"],
    summary: "Start an execution that was submitted; of a failed one, retry what failed",
    options: [INPUT, KEY],
    settings: CLIENT,
    load: () => import("./verbs/trigger.ts"),
  },
  {
    name: "ls",
    also: ["runs ls"],
    group: "look",
    args: [],
    summary: "Executions, newest first",
    options: [STATUS, WORKFLOW, SINCE, LIMIT],
    settings: CLIENT,
    load: () => import("./verbs/list-executions.ts"),
  },
  {
    name: "show",
    also: ["runs show"],
    group: "look",
    args: ["<execution>"],
    summary: "One execution with its nodes; @latest and @failed name the newest such",
    options: [{ name: "node", value: "ID", doc: "only this node, with its whole output" }],
    settings: CLIENT,
    load: () => import("./verbs/show.ts"),
  },
  {
    name: "result",
    also: ["runs result"],
    group: "look",
    args: ["<execution>"],
    summary: "The output of an execution that is over",
    options: [],
    settings: CLIENT,
    load: () => import("./verbs/result.ts"),
  },
  {
    name: "watch",
    also: ["runs watch"],
    group: "look",
    args: ["<execution>"],
    summary: "Follow an execution until it is over; prints its output",
    options: [TIMEOUT, NO_APPROVAL],
    settings: CLIENT,
    load: () => import("./verbs/watch.ts"),
  },
  {
    name: "events",
    also: ["runs events"],
    group: "look",
    args: ["<execution>"],
    summary: "The history of an execution",
    options: [{ name: "after", value: "SEQ", doc: "only what came after this event" }, FOLLOW, TIMEOUT],
    settings: CLIENT,
    load: () => import("./verbs/events.ts"),
  },
  {
    name: "logs",
    also: ["runs logs"],
    group: "look",
    args: ["<execution>"],
    summary: "What the handlers have logged",
    options: [
      { name: "node", value: "ID", doc: "only of this node" },
      { name: "attempt", value: "N", doc: "only of this attempt" },
      FOLLOW,
      TIMEOUT,
    ],
    settings: CLIENT,
    load: () => import("./verbs/logs.ts"),
  },
  {
    name: "why",
    also: ["runs why"],
    group: "look",
    args: ["<execution>", "[node]"],
    summary: "Why each open node is not done, one sentence each",
    options: [],
    settings: CLIENT,
    load: () => import("./verbs/why.ts"),
  },
  {
    name: "cancel",
    also: ["runs cancel"],
    group: "act",
    args: ["[execution…]"],
    summary: "End executions now",
    options: ALL,
    settings: CLIENT,
    load: () => import("./verbs/act.ts"),
  },
  {
    name: "pause",
    also: ["runs pause"],
    group: "act",
    args: ["[execution…]"],
    summary: "Start nothing new in executions; what runs goes on",
    options: ALL,
    settings: CLIENT,
    load: () => import("./verbs/act.ts"),
  },
  {
    name: "resume",
    also: ["runs resume"],
    group: "act",
    args: ["[execution…]"],
    summary: "Let paused executions go on",
    options: ALL,
    settings: CLIENT,
    load: () => import("./verbs/act.ts"),
  },
  {
    name: "retry",
    also: ["runs retry"],
    group: "act",
    args: ["[execution…]"],
    summary: "Run again what failed, and keep what completed",
    options: [{ name: "dry-run", doc: "only say what would run again" }, ...ALL],
    settings: CLIENT,
    load: () => import("./verbs/act.ts"),
  },
  {
    name: "rerun",
    also: ["runs rerun"],
    group: "act",
    args: ["<execution>"],
    summary: "Run a node and all behind it again",
    options: [
      { name: "from", value: "NODE", doc: "the node to begin with (needed)" },
      { name: "only", doc: "this node alone" },
      { name: "set", value: "PATH=JSON", many: true, doc: "change its config: --set url='\"https://…\"'" },
      { name: "dry-run", doc: "only say what would run again" },
    ],
    settings: CLIENT,
    load: () => import("./verbs/rerun.ts"),
  },
  {
    name: "signal",
    also: ["runs signal"],
    group: "act",
    args: ["<execution>", "<name>"],
    summary: "Send a signal to an execution that waits for it",
    options: [{ name: "data", value: "JSON|@FILE|-", doc: "what it carries" }],
    settings: CLIENT,
    load: () => import("./verbs/signal.ts"),
  },
  {
    name: "reviews",
    also: ["reviews ls", "approvals", "approvals ls"],
    group: "people",
    args: [],
    summary: "What waits for a person",
    options: [LIMIT],
    settings: CLIENT,
    load: () => import("./verbs/reviews.ts"),
  },
  {
    name: "approve",
    also: ["approvals approve", "reviews approve"],
    group: "people",
    args: ["<review>"],
    summary: "Decide a review; @latest names the newest",
    options: [
      { name: "data", value: "JSON|@FILE|-", doc: "what its form asks for" },
      { name: "comment", value: "TEXT", doc: "why" },
    ],
    settings: CLIENT,
    load: () => import("./verbs/decide.ts"),
  },
  {
    name: "reject",
    also: ["approvals reject", "reviews reject"],
    group: "people",
    args: ["<review>"],
    summary: "Decide a review the other way",
    options: [
      { name: "data", value: "JSON|@FILE|-", doc: "what its form asks for" },
      { name: "comment", value: "TEXT", doc: "why" },
    ],
    settings: CLIENT,
    load: () => import("./verbs/decide.ts"),
  },
  {
    name: "dlq ls",
    also: ["dlq"],
    group: "letters",
    args: [],
    summary: "Nodes that failed by their own fault, newest first",
    options: [
      { name: "class", value: "poison|exhausted", doc: "only these" },
      { name: "queue", value: "NAME", doc: "only of this queue" },
      LIMIT,
    ],
    settings: CLIENT,
    load: () => import("./verbs/dead-letters.ts"),
  },
  {
    name: "dlq show",
    also: [],
    group: "letters",
    args: ["<id>"],
    summary: "One dead letter with its config and error",
    options: [],
    settings: CLIENT,
    load: () => import("./verbs/dead-letters.ts"),
  },
  {
    name: "dlq retry",
    also: [],
    group: "letters",
    args: ["<id…>"],
    summary: "Run their nodes again, in new generations",
    options: [],
    settings: CLIENT,
    load: () => import("./verbs/dead-letters.ts"),
  },
  {
    name: "dlq drop",
    also: [],
    group: "letters",
    args: ["<id…>"],
    summary: "Take them off the list for good",
    options: [],
    settings: CLIENT,
    load: () => import("./verbs/dead-letters.ts"),
  },
  {
    name: "workflow ls",
    also: ["workflows", "workflow", "workflows ls"],
    group: "rest",
    args: [],
    summary: "Stored workflows",
    options: [LIMIT],
    settings: CLIENT,
    load: () => import("./verbs/workflows.ts"),
  },
  {
    name: "workflow push",
    also: ["workflows push"],
    group: "rest",
    args: ["<file>"],
    summary: "Store a definition, and run nothing",
    options: [KEY],
    settings: [...CLIENT, "allowMissingHandlers"],
    load: () => import("./verbs/workflows.ts"),
  },
  {
    name: "workflow show",
    also: ["workflows show"],
    group: "rest",
    args: ["<name>", "[version]"],
    summary: "A stored definition",
    options: [],
    settings: CLIENT,
    load: () => import("./verbs/workflows.ts"),
  },
  {
    name: "workers",
    also: ["workers ls"],
    group: "rest",
    args: [],
    summary: "Workers that are alive, and what they serve",
    options: [],
    settings: CLIENT,
    load: () => import("./verbs/workers.ts"),
  },
  {
    name: "queues",
    also: ["queues ls"],
    group: "rest",
    args: [],
    summary: "Queues: what waits and since when, what runs, who serves them",
    options: [],
    settings: CLIENT,
    load: () => import("./verbs/queues.ts"),
  },
  {
    name: "export",
    also: ["runs export"],
    group: "rest",
    args: ["<execution>"],
    summary: "One file of an execution that can be replayed, with secrets left out",
    options: [{ name: "output", short: "o", value: "FILE", doc: "write it there instead of stdout" }],
    settings: CLIENT,
    load: () => import("./verbs/export.ts"),
  },
  {
    name: "keys add",
    also: [],
    group: "rest",
    args: [],
    summary: "Make an API key and keep its hash in the store; shown this once",
    options: [{ name: "role", value: "ROLE", doc: "viewer, author, operator, reviewer, worker or admin (needed)" }],
    settings: ["store"],
    load: () => import("./verbs/add-key.ts"),
  },
  {
    name: "doctor",
    also: [],
    group: "rest",
    args: [],
    summary: "Check versions, settings, store, server, clock and handlers, with fixes",
    options: [],
    settings: [...CLIENT, "store"],
    load: () => import("./verbs/doctor.ts"),
  },
  {
    name: "completion",
    also: [],
    group: "rest",
    args: ["<bash|zsh|fish>"],
    summary: "A script that completes commands in your shell",
    options: [],
    settings: [],
    load: () => import("./verbs/completion.ts"),
  },
];
