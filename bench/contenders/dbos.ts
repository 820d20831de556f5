import type { Contender, Servers } from "../contender.ts";
import { peerModule } from "../peer-module.ts";
import type { Probe } from "../probe.ts";
import type { Output } from "../shapes.ts";
import { inFlight } from "./in-flight.ts";
import { preparePostgres } from "./postgres-server.ts";

export const WIDTH = 100;
export const POOL = 20;

/** The part of DBOS Transact that is called here. */
interface Dbos {
  readonly DBOS: {
    setConfig(config: {
      readonly name: string;
      readonly systemDatabaseUrl: string;
      readonly systemDatabasePoolSize: number;
      readonly logLevel: string;
    }): void;
    launch(): Promise<void>;
    shutdown(): Promise<void>;
    registerWorkflow(run: () => Promise<Output>, options: { readonly name: string }): () => Promise<Output>;
    startWorkflow(workflow: () => Promise<Output>): () => Promise<{ getResult(): Promise<Output> }>;
    runStep(step: () => Promise<Output>, options: { readonly name: string }): Promise<Output>;
  };
}

/** One workflow function; every node is a step, which begins as soon as its parents have given their outputs. */
export async function startDbos(probe: Probe, servers: Servers): Promise<Contender> {
  const { DBOS } = await peerModule<Dbos>("@dbos-inc/dbos-sdk");
  const { url, pid } = await preparePostgres(servers.postgres);
  const { nodes } = probe.shape;
  const workflow = DBOS.registerWorkflow(
    async () => {
      const outputs = new Map<string, Promise<Output>>();
      for (const { id, after } of nodes) {
        const run = async (): Promise<Output> => {
          const inputs = await Promise.all(after.map((parent) => outputs.get(parent)!));
          return DBOS.runStep(async () => probe.step(id, inputs), { name: id });
        };
        outputs.set(id, run());
      }
      const all = await Promise.all(outputs.values());
      return all.at(-1)!;
    },
    { name: "shape" },
  );
  DBOS.setConfig({ name: "bench", systemDatabaseUrl: url, systemDatabasePoolSize: POOL, logLevel: "error" });
  await DBOS.launch();
  const runOne = async (): Promise<void> => {
    const started = await DBOS.startWorkflow(workflow)();
    await started.getResult();
  };
  return {
    servers: { postgres: pid },
    submit: (count) => inFlight(count, WIDTH, runOne),
    runOne,
    settled: async () => {},
    close: () => DBOS.shutdown(),
  };
}
