import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { GROUPS, type SettingName, type Settings, SETTINGS, WITHOUT_EFFECT } from "./declarations.ts";
import { readSettings, type SettingSources } from "./read-settings.ts";
import { ofHandler, type Setting } from "./setting.ts";
import { shownAddress, storeAddress } from "./store-address.ts";
import { settingsPage } from "./write-settings-page.ts";

function read(sources: Partial<SettingSources> = {}): ReturnType<typeof readSettings> {
  return readSettings({ env: {}, ...sources });
}

describe("settings", () => {
  test("take a flag before the environment, that before the config file, that before the default", () => {
    const file = { path: "millrace.config.json", values: { port: 3 } };
    const env = { MILLRACE_PORT: "2" };
    expect(read({ flags: { port: "1" }, env, file }).settings.port).toBe(1);
    expect(read({ env, file }).settings.port).toBe(2);
    expect(read({ file }).settings.port).toBe(3);
    expect(read().settings.port).toBe(4747);
    expect(read({ defaults: { port: 9 } }).settings.port).toBe(9);
  });

  test("say where each value comes from", () => {
    const { origins } = read({
      flags: { host: "::1" },
      env: { PORT: "80" },
      file: { path: "c.json", values: { mock: true } },
    });
    expect([origins.host, origins.port, origins.mock, origins.store]).toEqual([
      "--host",
      "PORT",
      '"mock" in c.json',
      "default",
    ]);
  });

  test("take MILLRACE_PORT before PORT, and an empty variable for none", () => {
    expect(read({ env: { PORT: "1", MILLRACE_PORT: "2" } }).settings.port).toBe(2);
    expect(read({ env: { PORT: "1", MILLRACE_PORT: "" } }).settings.port).toBe(1);
  });

  const wrong: readonly [Record<string, string>, string][] = [
    [{ MILLRACE_PORT: "70000" }, 'MILLRACE_PORT must be from 0 to 65535, not "70000".'],
    [{ PORT: "http" }, 'PORT must be an integer, not "http".'],
    [{ PORT: "1e3" }, 'PORT must be an integer, not "1e3".'],
    [{ WORKER_CONCURRENCY: "0" }, 'WORKER_CONCURRENCY must be from 1 to 10000, not "0".'],
    [{ MILLRACE_ROLES: "api,queen" }, 'MILLRACE_ROLES must be a list of api, engine, worker, not "api,queen".'],
    [{ MILLRACE_ENV: "staging" }, 'MILLRACE_ENV must be one of dev, test, prod, not "staging".'],
    [
      { MILLRACE_LIMITS: "openai=5,foo=bar" },
      'MILLRACE_LIMITS must be a list such as openai=50/second+200000tokens/minute,gpu=4, not "foo=bar".',
    ],
    [
      { MILLRACE_PRICES: "foo=bar" },
      'MILLRACE_PRICES must be a list such as gpt-4o-mini=0.15/0.60,*=5/15, not "foo=bar".',
    ],
    ...["10.0.0.0/99", "http://x/y", "host:99999"].map((entry): [Record<string, string>, string] => [
      { MILLRACE_EGRESS_ALLOW: `api.internal 10.0.0.0/8,${entry}` },
      `MILLRACE_EGRESS_ALLOW must be a list such as api.internal:8443,10.0.0.0/8, not "${entry}".`,
    ]),
    [{ MILLRACE_MOCK: "maybe" }, 'MILLRACE_MOCK must be true or false, not "maybe".'],
    [{ RETRY_INITIAL_DELAY: "90" }, "RETRY_MAX_DELAY must not be less than RETRY_INITIAL_DELAY."],
    [{ MILLRACE_BUS: "kafka" }, "MILLRACE_BUS=kafka needs KAFKA_BROKERS, as HOST:PORT,…."],
    [
      { MILLRACE_BUS_QUEUES: "a" },
      "MILLRACE_BUS_QUEUES needs MILLRACE_BUS: without it these tasks would wait for nobody.",
    ],
    [{ OPENAI_API_KEY_FILE: "/nowhere" }, 'OPENAI_API_KEY_FILE names "/nowhere", which cannot be read.'],
  ];
  test.each(wrong)("refuse %o", (env, sentence) => {
    expect(read({ env }).faults).toEqual([sentence]);
  });

  test("take places that may be called, separated by commas and spaces", () => {
    const { settings, faults } = read({ env: { MILLRACE_EGRESS_ALLOW: "10.0.0.0/8 api.internal, [::1]:8080,::1," } });
    expect(faults).toEqual([]);
    expect(settings.egressAllow).toEqual(["10.0.0.0/8", "api.internal", "[::1]:8080", "::1"]);
  });

  test("tell all faults at once", () => {
    const file = { path: "c.json", values: { prot: 1 } };
    const { faults } = read({ env: { PORT: "x", MILLRACE_ENV: "y" }, flags: { grace: 1 } as never, file });
    expect(faults).toEqual([
      'PORT must be an integer, not "x".',
      'MILLRACE_ENV must be one of dev, test, prod, not "y".',
      'c.json has no setting "prot". Did you mean port?',
    ]);
  });

  test("read a secret from a file, and never show one", () => {
    const readFile = (path: string): string | undefined => (path === "/run/key" ? "sk-1\n" : undefined);
    expect(read({ env: { OPENAI_API_KEY_FILE: "/run/key" }, readFile }).settings.openaiApiKey).toBe("sk-1");
    const { faults } = read({ file: { path: "c.json", values: { openaiApiKey: { hidden: "sk-2" } } } });
    expect(faults).toEqual(['"openaiApiKey" in c.json must be text.']);
  });

  test("take numbers for single handlers from variables that no other setting has", () => {
    const env = {
      WORKER_CONCURRENCY: "9",
      WORKER_CONCURRENCY_LLM: "2",
      WORKER_CONCURRENCY_OCR_TEXT: "3",
      STALE_TIMEOUT_DEFAULT: "20",
      STALE_TIMEOUT_INPUT: "30",
      STALE_TIMEOUT_OCR_TEXT: "600",
    };
    const { settings, faults } = read({ env });
    expect(faults).toEqual([]);
    expect(settings).toMatchObject({
      workerConcurrency: 9,
      staleTimeoutDefault: 20,
      staleTimeoutOf: { OCR_TEXT: 600 },
    });
    expect(settings.workerConcurrencyOf).toEqual({ LLM: 2, OCR_TEXT: 3 });
    expect(ofHandler(settings.workerConcurrencyOf, "ocr.text")).toBe(3);
    expect(ofHandler(settings.workerConcurrencyOf, "constructor")).toBeUndefined();
    const file = { path: "c.json", values: { workerConcurrencyOf: { "ocr.text": 5 } } };
    expect(read({ file }).settings.workerConcurrencyOf).toEqual({ OCR_TEXT: 5 });
    const wrong = read({ env: { WORKER_CONCURRENCY_LLM: "no" } });
    expect(wrong.faults[0]).toContain("WORKER_CONCURRENCY_LLM must be an integer for LLM");
  });

  test("refuse for production what would let work wait for nobody, and slots that one queue cannot have", () => {
    const faults = (env: Record<string, string>): readonly string[] => read({ env }).faults;
    expect(faults({ MILLRACE_ENV: "prod", MILLRACE_ALLOW_MISSING_HANDLERS: "true" })).toHaveLength(1);
    expect(faults({ MILLRACE_ALLOW_MISSING_HANDLERS: "true" })).toEqual([]);
    expect(faults({ MILLRACE_SINGLE_QUEUE: "tasks", WORKER_CONCURRENCY_LLM: "2" })).toHaveLength(1);
    expect(faults({ MILLRACE_SINGLE_QUEUE: "tasks" })).toEqual([]);
  });

  test("answer those of the source documents that do nothing by one warning", () => {
    const { warnings, faults } = read({ env: { STALE_TIMEOUT_INPUT: "30", ORCHESTRATOR_RECOVERY_TIMEOUT: "60" } });
    expect(faults).toEqual([]);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain(`STALE_TIMEOUT_INPUT: ${WITHOUT_EFFECT["STALE_TIMEOUT_INPUT"]}`);
  });

  test("warn of what is wrong with those that others read too, and go on without it", () => {
    const { settings, warnings, faults } = read({ env: { OTEL_SDK_DISABLED: "1", OTEL_SERVICE_NAME: " " } });
    expect([settings.otelDisabled, settings.otelServiceName, faults]).toEqual([false, "millrace", []]);
    expect(warnings).toEqual([
      'OTEL_SERVICE_NAME has no effect: it must not be empty, not " ".',
      'OTEL_SDK_DISABLED has no effect: it must be true or false, not "1".',
    ]);
  });

  test("notice a variable with our prefix that nobody reads, but no secret", () => {
    const { warnings } = read({ env: { MILLRACE_PROT: "1", MILLRACE_SECRET_X: "1", MILLRACE_API_KEYS_FILE: "" } });
    expect(warnings).toEqual(["MILLRACE_PROT is no setting. Did you mean MILLRACE_PORT?"]);
  });

  test("know the variables that name files of ours", () => {
    expect(read({ env: { MILLRACE_CONFIG: "c.json", MILLRACE_CONTEXTS: "contexts.json" } }).warnings).toEqual([]);
  });

  test("have names and defaults of seed 001's groups", () => {
    const { settings } = read();
    expect(settings).toMatchObject({
      redisHost: "localhost",
      redisPort: 6379,
      redisSocketTimeout: 10,
      workerConcurrency: 4,
      workerHeartbeatInterval: 5,
      workerHeartbeatTimeout: 15,
      workerGrace: 30,
      staleTimeoutHttp: 120,
      staleTimeoutLlm: 180,
      staleTimeoutDefault: 30,
      retryMaxAttempts: 3,
      retryInitialDelay: 1,
      retryMaxDelay: 60,
      retryExponentialBase: 2,
      retryJitter: true,
    } satisfies Partial<Settings>);
  });

  test("have a default that they would accept, a name and a flag of their own, and a sentence", () => {
    const seen = new Set<string>();
    for (const name of Object.keys(SETTINGS) as SettingName[]) {
      const setting: Setting = SETTINGS[name];
      if (setting.default !== undefined) expect(setting.read(setting.default), name).toEqual(setting.default);
      expect(setting.doc, name).toMatch(/\.$/);
      for (const used of [...setting.env, ...(setting.flag === undefined ? [] : [`--${setting.flag}`])]) {
        expect(seen.has(used), used).toBe(false);
        seen.add(used);
      }
    }
    expect(GROUPS[0]![0]).toBe(Object.keys(SETTINGS)[0]);
  });

  test("are what docs/settings.md says (npm run docs writes it)", () => {
    expect(readFileSync(join(import.meta.dirname, "../../docs/settings.md"), "utf8")).toBe(settingsPage());
  });
});

describe("the address of the store", () => {
  const cases: readonly [env: Record<string, string>, shown: string][] = [
    [{}, "sqlite:./.millrace/millrace.db"],
    [{ MILLRACE_STORE: "sqlite:/var/x.db" }, "sqlite:/var/x.db"],
    [{ MILLRACE_STORE: "memory:" }, "memory"],
    [{ DATABASE_URL: "postgres://a:b@c/d" }, "sqlite:./.millrace/millrace.db"],
    [{ MILLRACE_STORE: "postgres", DATABASE_URL: "postgres://a:b@c/d" }, "postgres://…@c/d"],
    [{ MILLRACE_STORE: "postgres", POSTGRES_HOST: "h", POSTGRES_PASSWORD: "p@ss" }, "postgres://…@h:5432/millrace"],
    [{ MILLRACE_STORE: "redis", REDIS_PORT: "7000" }, "redis://localhost:7000"],
    [{ MILLRACE_STORE: "redis", REDIS_URL: "rediss://u:p@h:1" }, "rediss://…@h:1"],
    [{ MILLRACE_STORE: "rediss://u:p@h:1" }, "rediss://…@h:1"],
    [{ MILLRACE_STORE: "redis", REDIS_HOST: "::1" }, "redis://[::1]:6379"],
    [{ MILLRACE_STORE: "redis", REDIS_HOST: "/run/my redis.sock" }, "unix:///run/my%20redis.sock"],
    [{ MILLRACE_STORE: "postgres", POSTGRES_HOST: "fe80::a" }, "postgres://…@[fe80::a]:5432/millrace"],
    [
      { MILLRACE_STORE: "postgres", POSTGRES_HOST: "/var/run/postgresql", POSTGRES_PORT: "5433" },
      "postgres://…@/millrace?host=/var/run/postgresql&port=5433",
    ],
  ];
  test.each(cases)("of %o is %s", (env, shown) => {
    const address = storeAddress(read({ env }).settings);
    expect("fault" in address ? address.fault : shownAddress(address)).toBe(shown);
  });

  test("is refused if it is none, without showing a password, or would lose everything in production", () => {
    expect(storeAddress(read({ env: { MILLRACE_STORE: "mysql://u:p@h" } }).settings)).toEqual({
      fault: 'MILLRACE_STORE must be sqlite:PATH, postgres://…, redis://… or memory:, not "mysql://…@h".',
    });
    expect(storeAddress(read({ env: { MILLRACE_STORE: "memory:", MILLRACE_ENV: "prod" } }).settings)).toHaveProperty(
      "fault",
    );
  });
});
