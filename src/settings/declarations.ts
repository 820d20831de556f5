import {
  boolean,
  byHandler,
  choice,
  choices,
  egressList,
  integer,
  limitList,
  priceList,
  list,
  number,
  onlyTrue,
  seconds,
  secret,
  secretList,
  type Setting,
  text,
  type ValueOf,
} from "./setting.ts";

/** What one process can be. */
export const ROLES = ["api", "engine", "worker"] as const;
export type Role = (typeof ROLES)[number];

/**
 * Every setting, declared once: the reader, the flags of the CLI and docs/settings.md come from here. The key is its name
 * in a config file. Names without our prefix are those of the source documents, or the usual ones.
 */
export const SETTINGS = {
  // ── where it listens ──────────────────────────────────────────────────────────────────────────────────────────
  host: text({
    env: "MILLRACE_HOST",
    flag: "host",
    default: "127.0.0.1",
    doc: "The address to listen on. Beyond loopback the API starts only with a key, of `MILLRACE_API_KEYS` or added by `millrace keys add`; on a port for health alone only `/metrics` needs a key.",
  }),
  port: integer({
    env: ["MILLRACE_PORT", "PORT"],
    flag: "port",
    default: 4747,
    min: 0,
    max: 65_535,
    doc: "The port to listen on. 0 takes any that is free, and the log says which.",
  }),
  healthPort: integer({
    env: "MILLRACE_HEALTH_PORT",
    flag: "health-port",
    default: undefined,
    min: 0,
    max: 65_535,
    doc: "The port on which a process of `serve` or `worker` without the role `api` tells its health and what it measures. It has `/health/live`, `/health/ready` and `/metrics`, on the address of `MILLRACE_HOST`; 0 takes any that is free. Without it such a process listens nowhere, so that several on one machine do not want the same. With the role `api` the API's port has all of it, and this has no effect.",
  }),
  apiKeys: secretList({
    env: "MILLRACE_API_KEYS",
    default: [],
    doc: "`role:key,…` with the roles viewer, author, operator, reviewer, worker, admin. With keys every request needs one.",
  }),
  ingressPerMinute: integer({
    env: "MILLRACE_INGRESS_PER_MINUTE",
    flag: "ingress-per-minute",
    default: 60,
    min: 0,
    max: 1_000_000,
    doc: "Starts per minute and key or address, when listening beyond loopback. 0 = no limit: one client can then fill the store.",
  }),
  drainSeconds: seconds({
    env: "MILLRACE_DRAIN_SECONDS",
    default: 1,
    min: 0,
    max: 300,
    doc: "How long a process that is to stop says that it is not ready and serves all the same, so that whoever spreads requests notices. On SQLite and memory it does not wait.",
  }),
  maxQueueAge: seconds({
    env: "MILLRACE_MAX_QUEUE_AGE",
    default: 3_600,
    min: 0,
    max: 604_800,
    doc: "New work is refused while a task waits longer than this in a queue that somebody serves. Short refuses what a burst would have worked off; 0 = never refuse for this.",
  }),
  maxStoreFill: number({
    env: "MILLRACE_MAX_STORE_FILL",
    default: 0.75,
    min: 0.1,
    max: 1,
    doc: "New work is refused while the store is fuller than this part of what it may hold, where that is known: on Redis with `maxmemory`. The rest is for finishing what was accepted.",
  }),
  maxMemory: number({
    env: "MILLRACE_MAX_MEMORY",
    default: 0.9,
    min: 0.1,
    max: 1,
    doc: "New work is refused while this process uses more than this part of the memory that it may have.",
  }),
  roles: choices({
    env: "MILLRACE_ROLES",
    flag: "roles",
    of: ROLES,
    default: ROLES,
    doc: "What this process does. On SQLite and memory api and engine belong in one process; workers may come over HTTP.",
  }),
  environment: choice({
    env: "MILLRACE_ENV",
    flag: "env",
    of: ["dev", "test", "prod"],
    default: "dev",
    doc: "Stands in every log line. `prod` refuses what would lose data, fake results or let work wait for nobody: the memory store, `MILLRACE_MOCK`, missing handlers; and without a model `llm` and `llm.extract` fail. The `mock` of a node's own config counts in `prod` too.",
  }),

  // ── where it keeps things ─────────────────────────────────────────────────────────────────────────────────────
  store: text({
    env: "MILLRACE_STORE",
    flag: "store",
    default: "sqlite:./.millrace/millrace.db",
    doc: "`sqlite:PATH`, `postgres://…`, `redis://…` or `memory:`; `postgres` and `redis` alone take their address from `DATABASE_URL` or `POSTGRES_*`, `REDIS_URL` or `REDIS_*`.",
  }),
  partitions: integer({
    env: "MILLRACE_PARTITIONS",
    default: undefined,
    min: 1,
    max: 1024,
    doc: "Fixed when the store is created: 32, and 1 on SQLite and memory. More than there are engines, fewer than there are executions.",
  }),
  retentionDays: number({
    env: "MILLRACE_RETENTION_DAYS",
    flag: "retention-days",
    default: 7,
    min: 0.01,
    max: 3_650,
    doc: "Executions are removed this long after their end, one that was never triggered after its submission, if there is no archive, and the Idempotency-Keys they came with. Long keeps history, and lets the store grow; below 1 a key is known for less than a day.",
  }),
  archive: text({
    env: "MILLRACE_ARCHIVE",
    flag: "archive",
    default: undefined,
    doc: "`postgres://…`, or `postgres` for the address of `POSTGRES_*`: journals are copied there and stay for good; what has ended leaves the store soon after. See archive.md.",
  }),
  checkpointInterval: seconds({
    env: "ORCHESTRATOR_CHECKPOINT_INTERVAL",
    default: 1,
    min: 0.05,
    max: 600,
    doc: "How often new records are copied to the archive. Long loses more if the store is lost; short asks Postgres more often.",
  }),
  archiveKeep: seconds({
    env: "MILLRACE_ARCHIVE_KEEP_SECONDS",
    default: 600,
    min: 0,
    max: 604_800,
    doc: "What has ended leaves the store this long after it was copied to the archive. Long needs memory; short reads more from Postgres.",
  }),
  retentionCount: integer({
    env: "MILLRACE_RETENTION_COUNT",
    flag: "retention-count",
    default: 1_000_000,
    min: 0,
    max: 1_000_000_000,
    doc: "Of executions that are over, SQLite keeps about this many, the newest, and with each all that it has called; the others are removed before their time. 0 = any number. Fewer than end in a day, and an Idempotency-Key may be forgotten before its day is over.",
  }),
  allowUnsafeStore: list({
    env: "MILLRACE_ALLOW_UNSAFE_STORE",
    default: [],
    doc: "Codes of the store's own settings that are accepted though they can lose data, by name.",
  }),
  redisDurability: choice({
    env: "MILLRACE_REDIS_DURABILITY",
    of: ["strict", "fast"],
    default: "strict",
    doc: "`strict` needs a Redis with `appendfsync always`; `fast` may lose up to 2 s on a crash of Redis.",
  }),
  redisUrl: secret({ env: "REDIS_URL", doc: "The address when `MILLRACE_STORE=redis`. It never chooses the store." }),
  redisHost: text({
    env: "REDIS_HOST",
    default: "localhost",
    doc: "When `MILLRACE_STORE=redis` and there is no `REDIS_URL`. What begins with `/` is the path of a socket.",
  }),
  redisPort: integer({ env: "REDIS_PORT", default: 6379, min: 1, max: 65_535, doc: "As `REDIS_HOST`." }),
  redisSocketTimeout: seconds({
    env: "REDIS_SOCKET_TIMEOUT",
    default: 10,
    min: 0.1,
    max: 600,
    doc: "How long connecting to Redis may take, and up to 5 s a command. Short gives up on a server that is only busy.",
  }),
  postgresUrl: secret({
    env: "DATABASE_URL",
    doc: "The address when `MILLRACE_STORE=postgres`. It never chooses the store: it may be another application's.",
  }),
  postgresHost: text({
    env: "POSTGRES_HOST",
    default: "localhost",
    doc: "When `MILLRACE_STORE` or `MILLRACE_ARCHIVE` is `postgres` and there is no `DATABASE_URL`. What begins with `/` is the folder of its socket.",
  }),
  postgresPort: integer({ env: "POSTGRES_PORT", default: 5432, min: 1, max: 65_535, doc: "As `POSTGRES_HOST`." }),
  postgresUser: text({ env: "POSTGRES_USER", default: "postgres", doc: "As `POSTGRES_HOST`." }),
  postgresPassword: secret({ env: "POSTGRES_PASSWORD", doc: "As `POSTGRES_HOST`." }),
  postgresDatabase: text({ env: "POSTGRES_DATABASE", default: "millrace", doc: "As `POSTGRES_HOST`." }),
  postgresSchema: text({
    env: "POSTGRES_SCHEMA",
    default: "millrace",
    doc: "All tables are in this schema, so that they can live in an application's database. Made if it is not there.",
  }),
  postgresMaxConnections: integer({
    env: "POSTGRES_MAX_CONNECTIONS",
    default: 8,
    min: 2,
    max: 100,
    doc: "Connections of one process, besides the one it listens on. Many processes with many each exceed what the server allows.",
  }),
  postgresConnectTimeout: seconds({
    env: "POSTGRES_CONNECT_TIMEOUT",
    default: 10,
    min: 0.1,
    max: 600,
    doc: "How long connecting to Postgres may take. Short gives up on a server that is only busy.",
  }),
  postgresStatementTimeout: seconds({
    env: "POSTGRES_STATEMENT_TIMEOUT",
    default: 10,
    min: 1,
    max: 600,
    doc: "How long one statement may take, waiting for locks included. Short gives up on what would have ended; long leaves everybody waiting behind a lock.",
  }),

  // ── the bus ───────────────────────────────────────────────────────────────────────────────────────────────────
  bus: text({
    env: "MILLRACE_BUS",
    flag: "bus",
    default: undefined,
    doc: "`kafka://HOST:PORT,…/PREFIX`, `kafkas://…` with TLS, each with `USER:PASSWORD@` in front of the hosts where the brokers ask for it; `kafka` alone takes `KAFKA_BROKERS`. A server then takes starts and results from Kafka, and sends the tasks of `MILLRACE_BUS_QUEUES` there; a worker takes them from there. See kafka.md.",
  }),
  kafkaBrokers: text({
    env: "KAFKA_BROKERS",
    default: undefined,
    doc: "`HOST:PORT,…` when `MILLRACE_BUS=kafka`. It never chooses the bus: it may be another application's.",
  }),
  busQueues: list({
    env: "MILLRACE_BUS_QUEUES",
    flag: "bus-queues",
    default: [],
    doc: "The queues whose tasks a server sends to Kafka; a queue is called like its handler unless a node names another. Every server of a fleet should have the same. Without any only starts and results come from there.",
  }),
  busWindow: integer({
    env: "MILLRACE_BUS_WINDOW",
    default: 200,
    min: 1,
    max: 100_000,
    doc: "So many tasks of a queue are in Kafka or with its workers at a time; the others wait in the store. Many keep a large fleet busy; what is in Kafka has no priority any more, and is not withdrawn when its execution is cancelled.",
  }),
  busPartitions: integer({
    env: "MILLRACE_BUS_PARTITIONS",
    default: 8,
    min: 1,
    max: 1_000,
    doc: "Of topics that are made here; those that are there stay as they are. No more workers than this share the tasks of a queue.",
  }),

  // ── workers ───────────────────────────────────────────────────────────────────────────────────────────────────
  workerConcurrency: integer({
    env: "WORKER_CONCURRENCY",
    flag: "concurrency",
    default: 4,
    min: 1,
    max: 10_000,
    doc: "Tasks one worker runs at a time. Few leave it idle while handlers wait; many share its memory and processor.",
  }),
  workerConcurrencyOf: byHandler(
    {
      env: "WORKER_CONCURRENCY_",
      doc: "Slots for the queue of one handler alone, beside the shared ones: `WORKER_CONCURRENCY_LLM=2`. The name in capitals, with `_` for what is no letter or digit.",
    },
    integer({ env: "", default: 1, min: 1, max: 10_000, doc: "" }),
  ),
  workerHeartbeatInterval: seconds({
    env: "WORKER_HEARTBEAT_INTERVAL",
    default: 5,
    min: 0.1,
    max: 300,
    doc: "How often a worker says that it lives. Also how long a handler that was asked to stop may take.",
  }),
  workerHeartbeatTimeout: seconds({
    env: "WORKER_HEARTBEAT_TIMEOUT",
    default: 15,
    min: 0.3,
    max: 3_600,
    doc: "After this long without a heartbeat its tasks go to another. Short repeats work; long delays recovery. At least two heartbeats.",
  }),
  workerGrace: seconds({
    env: "WORKER_GRACEFUL_SHUTDOWN_TIMEOUT",
    flag: "grace",
    default: 30,
    min: 0,
    max: 3_600,
    doc: "How long a stop waits for handlers; what still runs then is handed back, and its attempt is not used up.",
  }),
  handlers: list({
    env: "MILLRACE_HANDLERS",
    flag: "handlers",
    default: [],
    doc: "Modules with handlers for the worker: each exports `handlers`, an object by name of functions or of what `defineHandler` makes. Commands that run or check a file here find `handlers.ts`, `.mts`, `.js` or `.mjs` in the working directory by themselves.",
  }),
  queues: list({
    env: "MILLRACE_QUEUES",
    flag: "queues",
    default: [],
    doc: "Queues the worker takes tasks from. By default those named like the handlers it has.",
  }),
  singleQueue: text({
    env: "MILLRACE_SINGLE_QUEUE",
    default: undefined,
    doc: "One queue of this name for all nodes that name none, instead of one for each handler. For the API, which writes it into definitions, and for workers, each of which should then have all handlers. `embedded()` of the SDK keeps to one for each handler.",
  }),
  allowMissingHandlers: boolean({
    env: "MILLRACE_ALLOW_MISSING_HANDLERS",
    flag: "allow-missing-handlers",
    default: false,
    doc: "Accept workflows whose handlers nobody serves yet. A misspelt name then waits for a worker that never comes.",
  }),
  staleTimeoutHttp: seconds({
    env: "STALE_TIMEOUT_CALL_EXTERNAL_SERVICE",
    default: 120,
    min: 0.1,
    max: 86_400,
    doc: "Time limit of an `http` node that states none. Written into the definition when it is submitted.",
  }),
  staleTimeoutLlm: seconds({
    env: "STALE_TIMEOUT_LLM_SERVICE",
    default: 180,
    min: 0.1,
    max: 86_400,
    doc: "Time limit of an `llm` node that states none.",
  }),
  staleTimeoutDefault: seconds({
    env: "STALE_TIMEOUT_DEFAULT",
    default: 30,
    min: 0.1,
    max: 86_400,
    doc: "Time limit of any other node on a worker that states none.",
  }),
  staleTimeoutOf: byHandler(
    {
      env: "STALE_TIMEOUT_",
      doc: "Time limit of nodes of one handler that state none: `STALE_TIMEOUT_OCR_TEXT=600` for `ocr.text`.",
    },
    seconds({ env: "", default: 1, min: 0.1, max: 86_400, doc: "" }),
  ),

  // ── retries of nodes that state none ──────────────────────────────────────────────────────────────────────────
  retryMaxAttempts: integer({
    env: "RETRY_MAX_RETRIES",
    default: 3,
    min: 1,
    max: 100,
    doc: "Attempts in all, the first included, although its name says retries.",
  }),
  retryInitialDelay: seconds({
    env: "RETRY_INITIAL_DELAY",
    default: 1,
    min: 0,
    max: 86_400,
    doc: "The wait before the second attempt.",
  }),
  retryMaxDelay: seconds({
    env: "RETRY_MAX_DELAY",
    default: 60,
    min: 0,
    max: 604_800,
    doc: "The longest wait between attempts. Not less than the first.",
  }),
  retryExponentialBase: number({
    env: "RETRY_EXPONENTIAL_BASE",
    default: 2,
    min: 1,
    max: 100,
    doc: "What each wait is multiplied by. 1 = all the same.",
  }),
  retryJitter: boolean({
    env: "RETRY_JITTER",
    default: true,
    doc: "Lengthen each wait by up to a tenth at random, so that what failed together does not come back together.",
  }),

  limits: limitList({
    env: "MILLRACE_LIMITS",
    default: ["openai=50/second"],
    doc: "Limits that nodes may name as `limit` in workflows that do not define them. Too high, and the provider answers 429; too low, and work waits for nothing. For the API, which writes them into definitions.",
  }),

  prices: priceList({
    env: "MILLRACE_PRICES",
    default: [],
    doc: "What LLM tokens cost, in US dollars for a million read and written, by model; `*` is any other. Without a price money is counted only if the handler reports `usd`. For the API, which writes them into definitions with a budget in `usd`, and for workers, which report what a call has cost.",
  }),

  // ── built-in handlers ─────────────────────────────────────────────────────────────────────────────────────────
  egressAllow: egressList({
    env: "MILLRACE_EGRESS_ALLOW",
    flag: "egress-allow",
    default: [],
    doc: "Private places that `http`, `llm` and `notify` may call: `host`, `host:port` or CIDR. `dev` and `run` also allow loopback; the host of `OPENAI_BASE_URL` always is.",
  }),
  mock: boolean({
    env: "MILLRACE_MOCK",
    flag: "mock",
    default: false,
    doc: "Let every `http`, `llm`, `llm.extract` and `notify` node answer by its mock.",
  }),
  openaiApiKey: secret({
    env: "OPENAI_API_KEY",
    doc: "For `llm` nodes. Without it and without a base URL they answer by a mock that says so, and under `MILLRACE_ENV=prod` fail.",
  }),
  openaiBaseUrl: text({
    env: "OPENAI_BASE_URL",
    default: undefined,
    doc: "Any endpoint that speaks the OpenAI format. By default that of OpenAI itself, if there is a key.",
  }),

  openaiModel: text({
    env: "OPENAI_MODEL",
    default: undefined,
    doc: "The model of `llm` nodes that name none.",
  }),
  llmFixtures: text({
    env: "MILLRACE_LLM_FIXTURES",
    flag: "llm-fixtures",
    default: undefined,
    doc: "A JSON file with the answers that `llm.extract` gives without a model. See documents.md.",
  }),
  filesFolder: text({
    env: "MILLRACE_FILES_FOLDER",
    flag: "files-folder",
    default: undefined,
    doc: "What `file.read`, `pdf.text` and `ocr` may read lies in this folder. Without it they fail: a workflow's author must not read the machine's files.",
  }),
  outputFolder: text({
    env: "MILLRACE_OUTPUT_FOLDER",
    flag: "output-folder",
    default: undefined,
    doc: "What `output.json`, `output.parquet` and `audit` write goes into this folder. Without it they fail. Workers of one fleet need one that all can reach.",
  }),

  // ── telling ───────────────────────────────────────────────────────────────────────────────────────────────────
  logLevel: choice({
    env: ["MILLRACE_LOG_LEVEL", "LOG_LEVEL"],
    flag: "log-level",
    of: ["trace", "debug", "info", "warn", "error", "fatal", "silent"],
    default: "info",
    doc: "`info` has a line for every change of a node: much of it in a busy engine. `warn` has what somebody should look at.",
  }),

  otlpEndpoint: text({
    env: "OTEL_EXPORTER_OTLP_ENDPOINT",
    default: undefined,
    isShared: true,
    doc: "Where an engine sends traces: an address that speaks OTLP over HTTP in JSON, such as `http://collector:4318`, to which `/v1/traces` is added. Without one of these two nothing is sent. See operations.md.",
  }),
  otlpTracesEndpoint: text({
    env: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    default: undefined,
    isShared: true,
    doc: "The same as a whole address, to which nothing is added. It comes before the other.",
  }),
  otlpHeaders: secretList({
    env: ["OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"],
    default: [],
    isShared: true,
    doc: "`name=value,…` that traces are sent with, such as a key.",
  }),
  otelServiceName: text({
    env: "OTEL_SERVICE_NAME",
    default: "millrace",
    isShared: true,
    doc: "What traces call this process.",
  }),
  otelTracesExporter: list({
    env: "OTEL_TRACES_EXPORTER",
    default: ["otlp"],
    isShared: true,
    doc: "Without `otlp` among them, such as `none`, nothing is sent.",
  }),
  otelDisabled: onlyTrue({
    env: "OTEL_SDK_DISABLED",
    default: false,
    isShared: true,
    doc: "Send no traces, whatever the rest says.",
  }),

  // ── the CLI as a client ───────────────────────────────────────────────────────────────────────────────────────
  url: text({
    env: "MILLRACE_URL",
    flag: "url",
    default: "http://127.0.0.1:4747",
    doc: "The server that commands talk to.",
  }),
  apiKey: secret({ env: "MILLRACE_API_KEY", doc: "The key that commands send." }),
} as const satisfies Readonly<Record<string, Setting>>;

export type SettingName = keyof typeof SETTINGS;
export type Settings = { readonly [Name in SettingName]: ValueOf<(typeof SETTINGS)[Name]> };

/** The headings of docs/settings.md, each with the first setting under it. */
export const GROUPS: readonly (readonly [first: SettingName, title: string])[] = [
  ["host", "Where it listens"],
  ["store", "Where it keeps things"],
  ["bus", "The bus"],
  ["workerConcurrency", "Workers"],
  ["retryMaxAttempts", "Retries of nodes that state none"],
  ["limits", "Limits"],
  ["egressAllow", "Built-in handlers"],
  ["logLevel", "Logs"],
  ["otlpEndpoint", "Traces"],
  ["url", "Commands that talk to a server"],
];

/** Accepted, because the source documents have them, and answered by one warning that says why they do nothing. */
export const WITHOUT_EFFECT: Readonly<Record<string, string>> = {
  ORCHESTRATOR_RECOVERY_TIMEOUT: "an engine takes over at once and knows from the journal what was going on",
  ORCHESTRATOR_STALE_CLAIM_INTERVAL: "results cannot go stale: they are consumed by the commit that decides them",
  ORCHESTRATOR_STALE_RESULT_TIMEOUT: "results cannot go stale: they are consumed by the commit that decides them",
  STALE_TIMEOUT_INPUT: "input nodes run in the engine and take no time",
  STALE_TIMEOUT_OUTPUT: "output nodes run in the engine and take no time",
  REDIS_MAX_CONNECTIONS: "one connection carries all commands, and each blocking read has its own",
  REDIS_STREAM_BLOCK_MS: "readers are woken by what arrives and look once a second besides",
};
