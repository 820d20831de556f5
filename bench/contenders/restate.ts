import { createRequire } from "node:module";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort, ServerProcess } from "../../scripts/services/service.ts";
import type { Contender, Servers } from "../contender.ts";
import { peerModule } from "../peer-module.ts";
import type { Probe } from "../probe.ts";
import { levelsOf, type Output } from "../shapes.ts";
import { inFlight } from "./in-flight.ts";

export const WIDTH = 128;
const PROGRAM = "@restatedev/restate-server-linux-x64/bin/restate-server";

interface Context {
  run(name: string, step: () => Promise<Output>): Promise<Output>;
}

/** The part of the SDK that is called here. */
interface Sdk {
  workflow(definition: { readonly name: string; readonly handlers: object }): unknown;
  serve(options: { readonly services: readonly unknown[]; readonly port: number }): Promise<unknown>;
  readonly RestatePromise: { all(promises: readonly Promise<Output>[]): Promise<readonly Output[]> };
}

interface Clients {
  connect(options: { readonly url: string }): {
    workflowClient(
      workflow: unknown,
      key: string,
    ): { workflowSubmit(input: object): Promise<unknown>; workflowAttach(): Promise<unknown> };
  };
}

/** The server of its npm package, one node as it comes: 24 partitions, the log synced. Every node is a `ctx.run`. */
export async function startRestate(probe: Probe, { folder }: Servers): Promise<Contender> {
  process.env["RESTATE_LOGGING"] = "ERROR";
  const sdk = await peerModule<Sdk>("@restatedev/restate-sdk");
  const clients = await peerModule<Clients>("@restatedev/restate-sdk-clients");
  const [fabric, ingress, admin, own] = [await freePort(), await freePort(), await freePort(), await freePort()];
  const server = startServer(folder, { fabric, ingress, admin });
  const isUp = async (): Promise<boolean> =>
    (await fetch(`http://127.0.0.1:${admin}/health`).catch(() => null))?.ok === true;
  await server.waitUntil(isUp);

  const levels = levelsOf(probe.shape);
  const run = async (ctx: Context): Promise<Output> => {
    const outputs = new Map<string, Output>();
    for (const level of levels) {
      const given = await sdk.RestatePromise.all(
        level.map(({ id, after }) => {
          const inputs = after.map((parent) => outputs.get(parent)!);
          return ctx.run(id, async () => probe.step(id, inputs));
        }),
      );
      for (const [i, { id }] of level.entries()) outputs.set(id, given[i]!);
    }
    return outputs.get(probe.shape.nodes.at(-1)!.id)!;
  };
  const workflow = sdk.workflow({ name: "shape", handlers: { run } });
  await sdk.serve({ services: [workflow], port: own });
  await register(admin, own);
  const client = clients.connect({ url: `http://127.0.0.1:${ingress}` });
  let made = 0;
  /** Gives what waits for the result. Not the client itself: whatever is asked of it, `then` included, is a handler. */
  const begin = async (): Promise<() => Promise<unknown>> => {
    const one = client.workflowClient(workflow, `run-${made++}`);
    await one.workflowSubmit({});
    return () => one.workflowAttach();
  };
  return {
    servers: {},
    submit: (count) => inFlight(count, WIDTH, begin),
    runOne: async () => {
      const attach = await begin();
      await attach();
    },
    settled: async () => {},
    close: () => server.stop("SIGKILL"),
  };
}

function startServer(
  folder: string,
  { fabric, ingress, admin }: { readonly fabric: number; readonly ingress: number; readonly admin: number },
): ServerProcess {
  Object.assign(process.env, {
    RESTATE_BIND_IP: "127.0.0.1",
    RESTATE_BIND_PORT: String(fabric),
    RESTATE_LISTEN_MODE: "tcp",
    RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${ingress}`,
    RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${admin}`,
    RESTATE_DISABLE_TELEMETRY: "true",
    RESTATE_LOG_FILTER: "warn",
  });
  const program = createRequire(import.meta.url).resolve(PROGRAM);
  return new ServerProcess(program, ["--no-logo", "--base-dir", join(folder, "restate")]);
}

/** Tells the server where its handlers are. It may not be ready for that at once. */
async function register(admin: number, own: number): Promise<void> {
  const body = JSON.stringify({ uri: `http://127.0.0.1:${own}`, force: true });
  for (let tries = 1; ; tries++) {
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`http://127.0.0.1:${admin}/deployments`, { method: "POST", headers, body });
    if (answer.ok) return;
    if (tries === 50) throw new Error(await answer.text());
    await sleep(200);
  }
}
