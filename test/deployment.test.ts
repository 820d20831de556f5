import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { parse } from "yaml";
import { describe, expect, test } from "vitest";
import { systemRoutes, type SystemParts } from "../src/api/http/routes/system-routes.ts";
import { KEEP_ALIVE_MS, MAX_BULK_REPLAYS, MAX_LEASE_WAIT_MS, MAX_REPLAYS_PER_SECOND } from "../src/api/limits.ts";
import { parseArguments } from "../src/cli/parse-arguments.ts";
import { judgeRedis } from "../src/process/store-safety.ts";
import { SETTINGS } from "../src/settings/declarations.ts";
import { readSettings } from "../src/settings/read-settings.ts";
import { archiveAddress, storeAddress } from "../src/settings/store-address.ts";

const ROOT = join(import.meta.dirname, "..");
const read = (file: string): string => readFileSync(join(ROOT, file), "utf8");

interface ComposeService {
  readonly image: string;
  readonly profiles: readonly string[];
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly networks?: { readonly default: { readonly aliases: readonly string[] } };
  readonly volumes?: readonly string[];
  readonly stop_grace_period?: string;
  readonly ports?: readonly string[];
  readonly healthcheck?: object;
}

/** What the files of compose may say of a service, as far as we say anything. */
const SERVICE_KEYS: ReadonlySet<string> = new Set(
  (
    "build image init command environment healthcheck profiles depends_on deploy restart read_only tmpfs cap_drop " +
    "security_opt stop_grace_period volumes ports networks"
  ).split(" "),
);

const compose = parse(read("docker-compose.yml"), { merge: true }) as {
  readonly services: Readonly<Record<string, ComposeService>>;
  readonly volumes: Readonly<Record<string, unknown>>;
};
const services = Object.entries(compose.services);
const ours = services.filter(([, { image }]) => image === "millrace");

const paths = systemRoutes({} as SystemParts).map(({ path }) => path);

/** As compose fills it in, with something for what has to be given. */
function filled(env: Readonly<Record<string, string>>): Record<string, string> {
  const given = (_: string, name: string, how: string | undefined): string =>
    how?.startsWith(":-") === true && how.length > 2
      ? how.slice(2)
      : name === "MILLRACE_API_KEYS"
        ? "admin:k"
        : "s/e@c:ret";
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
        for (const [need, { condition }] of Object.entries(after!)) {
          expect([condition, compose.services[need]!.healthcheck !== undefined]).toEqual(["service_healthy", true]);
        }
        const { settings } = readSettings({ env: filled(environment!) });
        const archive = "postgres://millrace:s%2Fe%40c%3Aret@postgres:5432/millrace";
        expect(archiveAddress(settings)).toBe(profile === "full" ? archive : undefined);
        if (store === "postgres") expect(storeAddress(settings)).toEqual({ kind: store, url: archive });
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

  test.each(ours)("%s tells its health where the image asks for it", (_name, { environment, healthcheck }) => {
    expect(healthcheck).toBe(undefined);
    const { settings } = readSettings({ env: filled(environment!) });
    expect(settings.healthPort).toBe(settings.port);
  });

  test("says nothing that compose does not know, and gives our processes no more than they need", () => {
    for (const [name, service] of services) {
      expect([name, Object.keys(service).filter((key) => !SERVICE_KEYS.has(key))]).toEqual([name, []]);
    }
    const least = { read_only: true, cap_drop: ["ALL"], security_opt: ["no-new-privileges:true"] };
    for (const [, service] of ours) expect(service).toMatchObject({ ...least, init: true, tmpfs: ["/tmp"] });
    expect(compose.services["proxy"]).toMatchObject(least);
  });

  test("has a Redis that the strict profile accepts", () => {
    const [program, ...args] = compose.services["redis"]!.command!;
    expect(program).toBe("redis-server");
    const config = Object.fromEntries(args.flatMap((name, i) => (i % 2 === 0 ? [[name.slice(2), args[i + 1]!]] : [])));
    expect(Object.keys(config)).toHaveLength(args.length / 2);
    expect(judgeRedis(filled(config), "strict")).toEqual([]);
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

describe("deploy/haproxy.cfg", () => {
  const config = read("deploy/haproxy.cfg");
  const line = (pattern: RegExp): string => pattern.exec(config)?.[1] ?? `nothing like ${pattern}`;

  test("is one that haproxy takes", ({ skip }) => {
    const { status, stderr, error } = spawnSync("haproxy", ["-c", "-f", "deploy/haproxy.cfg"], {
      cwd: ROOT,
      encoding: "utf8",
      env: { PATH: `${process.env["PATH"]}:/usr/sbin` },
    });
    skip(error !== undefined, "haproxy is not installed");
    expect(status, stderr).toBe(0);
  });

  test("asks a route that there is, and notices a server that stops while that still serves", () => {
    expect(paths).toContain(line(/^ {2}option httpchk GET (\S+)$/m));
    const everyMs = Number(line(/^ {2}default-server check inter (\d+)ms fall 1 rise 1 /m));
    for (const [, { environment, command }] of ours) {
      const { settings } = readSettings({ env: filled(environment!) });
      if (command![0] === "serve") expect(settings.drainSeconds * 1_000).toBeGreaterThan(2 * everyMs);
    }
  });

  test("waits longer than anybody is silent, and names only what is there", () => {
    for (const side of ["client", "server"]) {
      const seconds = Number(line(new RegExp(`^ {2}timeout ${side} (\\d+)s$`, "m")));
      expect(seconds * 1_000).toBeGreaterThan(Math.max(KEEP_ALIVE_MS, MAX_LEASE_WAIT_MS));
      // The answer comes when all are replayed.
      expect(seconds).toBeGreaterThan((1.5 * MAX_BULK_REPLAYS) / MAX_REPLAYS_PER_SECOND);
    }
    expect(config).toContain(`\nbackend ${line(/^ {2}default_backend (\w+)$/m)}\n`);
    expect(config).toContain(`\nresolvers ${line(/ resolvers (\w+) /)}\n`);
    const [published] = compose.services["proxy"]!.ports!;
    expect(published!.split(":")[1]).toBe(line(/^ {2}bind :(\d+)$/m));
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

  test.each([
    [200, 0],
    [503, 1],
  ])("looks at a route that there is: %d ends its look with %d", async (status, code) => {
    let asked: string | undefined;
    const server = createServer((request, response) => {
      asked = request.url;
      response.writeHead(status).end();
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    const { port } = server.address() as AddressInfo;
    const [program, ...args] = JSON.parse(/HEALTHCHECK [^\n]*\n {2}CMD (.*)/.exec(read("Dockerfile"))![1]!) as string[];
    expect(program).toBe("node");
    const looking = spawn(process.execPath, args, { env: { MILLRACE_PORT: String(port) }, stdio: "inherit" });
    expect(await once(looking, "exit")).toEqual([code, null]);
    expect(paths).toContain(asked);
    server.close();
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
