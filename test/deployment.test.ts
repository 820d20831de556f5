import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { describe, expect, test } from "vitest";
import { parseArguments } from "../src/cli/parse-arguments.ts";
import { SETTINGS } from "../src/settings/declarations.ts";
import { readSettings } from "../src/settings/read-settings.ts";
import { storeAddress } from "../src/settings/store-address.ts";

const ROOT = join(import.meta.dirname, "..");
const read = (file: string): string => readFileSync(join(ROOT, file), "utf8");

interface ComposeService {
  readonly image: string;
  readonly profiles: readonly string[];
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly depends_on?: Readonly<Record<string, unknown>>;
  readonly networks?: { readonly default: { readonly aliases: readonly string[] } };
  readonly volumes?: readonly string[];
  readonly stop_grace_period?: string;
}

const compose = parse(read("docker-compose.yml"), { merge: true }) as {
  readonly services: Readonly<Record<string, ComposeService>>;
  readonly volumes: Readonly<Record<string, unknown>>;
};
const services = Object.entries(compose.services);
const ours = services.filter(([, { image }]) => image === "millrace");

/** As compose fills it in, with something for what has to be given. */
function filled(env: Readonly<Record<string, string>>): Record<string, string> {
  const given = (_: string, name: string, how: string | undefined): string =>
    how?.startsWith(":-") === true && how.length > 2
      ? how.slice(2)
      : name === "MILLRACE_API_KEYS"
        ? "admin:k"
        : "secret";
  return Object.fromEntries(
    Object.entries(env).map(([name, value]) => [name, value.replaceAll(/\$\{(\w+)(:[-?][^}]*)?\}/g, given)]),
  );
}

describe("docker-compose.yml", () => {
  const PROFILES = [
    ["redis", "redis", ["redis"]],
    ["postgres", "postgres", ["postgres"]],
    ["full", "redis", ["redis", "postgres"]],
  ] as const;
  test.each(PROFILES)(
    "the profile %s has two servers behind the proxy, workers, and what they need",
    (profile, store, needs) => {
      const own = ours.filter(([, { profiles }]) => profiles.includes(profile));
      expect(own.map(([name]) => name)).toEqual([`${profile}-server-a`, `${profile}-server-b`, `${profile}-worker`]);
      const aliases = own.flatMap(([, { networks }]) => networks?.default.aliases ?? []);
      const proxied = [...read("deploy/haproxy.cfg").matchAll(/^ {2}server \w+ ([\w-]+):(\d+)/gm)];
      expect(aliases).toEqual(proxied.map(([, host]) => host));
      expect(compose.services["proxy"]!.profiles).toContain(profile);
      for (const need of needs) expect(compose.services[need]!.profiles).toContain(profile);
      for (const [, { environment, depends_on: after }] of own) {
        expect(Object.keys(after!)).toEqual([...needs]);
        expect(environment!["MILLRACE_STORE"]).toBe(store);
        expect(proxied.every(([, , port]) => port === environment!["MILLRACE_PORT"])).toBe(true);
        expect(environment!["MILLRACE_ARCHIVE"] !== undefined).toBe(profile === "full");
      }
    },
  );

  test.each(ours)("%s has only settings that exist, and may start with them", (_name, { environment, command }) => {
    const known = new Set(Object.values(SETTINGS).flatMap(({ env }) => env));
    expect(Object.keys(environment!).filter((name) => !known.has(name))).toEqual([]);
    const { settings, faults, warnings } = readSettings({ env: filled(environment!) });
    expect([faults, warnings]).toEqual([[], []]);
    expect(storeAddress(settings)).not.toHaveProperty("fault");
    expect(settings).toMatchObject({ environment: "prod", apiKeys: ["admin:k"] });
    expect(parseArguments(command!).spec.name).toBe(command![0]);
  });

  test("gives a stop more time than it may take", () => {
    for (const [, { stop_grace_period: grace, environment }] of ours) {
      const { settings } = readSettings({ env: filled(environment!) });
      expect(Number.parseInt(grace!)).toBeGreaterThan(settings.workerGrace + settings.drainSeconds);
    }
  });

  test("names only volumes and files that are there", () => {
    for (const [, { volumes = [] }] of services) {
      for (const [from] of volumes.map((volume) => volume.split(":"))) {
        expect(from!.startsWith("./") ? existsSync(join(ROOT, from!)) : Object.hasOwn(compose.volumes, from!)).toBe(
          true,
        );
      }
    }
  });
});

describe("Dockerfile", () => {
  const lines = read("Dockerfile").split("\n");
  const stage = lines.slice(lines.findLastIndex((line) => line.startsWith("FROM ")));

  test("runs as a user that is not root, and begins with what the package begins with", () => {
    const user = stage.findLastIndex((line) => line.startsWith("USER "));
    expect(stage[user]).toBe("USER node");
    expect(stage.slice(user).some((line) => /^(RUN|COPY|ADD) /.test(line))).toBe(false);
    const { bin } = JSON.parse(read("package.json")) as { bin: { millrace: string } };
    expect(stage).toContain(`ENTRYPOINT ["node", "${bin.millrace}"]`);
  });

  test("copies only what is there and what .dockerignore lets through", () => {
    const allowed = read(".dockerignore")
      .split("\n")
      .filter((line) => line.startsWith("!"));
    const copied = lines
      .filter((line) => line.startsWith("COPY ") && !line.includes("--from"))
      .flatMap((line) => line.split(" ").slice(1, -1));
    expect(copied.length).toBeGreaterThan(5);
    for (const path of copied) {
      expect([path, existsSync(join(ROOT, path)), allowed.includes(`!${path}`)]).toEqual([path, true, true]);
    }
  });

  test("sets only what are settings", () => {
    const known = new Set(Object.values(SETTINGS).flatMap(({ env }) => env));
    const set = [...stage.join("\n").matchAll(/(MILLRACE_\w+)=/g)].map(([, name]) => name!);
    expect(set.filter((name) => !known.has(name))).toEqual([]);
  });
});
