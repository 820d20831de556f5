import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { findProgram, withLock } from "./install.ts";
import { freePort, givenService, type MortalService, ServerProcess, type Service } from "./service.ts";

const VARIABLE = "MILLRACE_TEST_KAFKA_BROKERS";
const POM = join(import.meta.dirname, "kafka", "pom.xml");
/** Beside what npm installs, so that it is made once and goes with it. */
const JARS = join(import.meta.dirname, "..", "..", "node_modules", ".cache", "millrace-kafka");
/** Less than whoever waits for a broker has patience. */
const DOWNLOADED_WITHIN_MS = 180_000;
/** As small as a broker may be, and quick to start. */
const JVM = ["-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"];
const run = promisify(execFile);

/** There is no broker, and none can be had here. Tests of it are skipped with this as their reason. */
export interface Missing {
  readonly missing: string;
}

/** A real Kafka broker with its own data, or why there is none: it comes from neither Debian nor npm. */
export async function startKafka(): Promise<Service | Missing> {
  const given = process.env[VARIABLE];
  return given === undefined ? startKafkaBroker() : givenService(`kafka://${given}`);
}

/** One that a test may end and start again on the same data. */
export async function startKafkaBroker(): Promise<MortalService | Missing> {
  const installed = await install();
  if ("missing" in installed) return installed;
  const folder = await mkdtemp(join(tmpdir(), "millrace-kafka-"));
  const [port, controllerPort] = [await freePort(), await freePort()];
  const file = join(folder, "server.properties");
  await writeFile(file, propertiesOf({ port, controllerPort, data: join(folder, "data") }));
  const java = (main: string, ...args: readonly string[]): readonly string[] => [
    ...JVM,
    "-cp",
    join(JARS, "*"),
    main,
    ...args,
  ];
  // Any name of a cluster is as good as another.
  const cluster = Buffer.from(crypto.randomUUID().replaceAll("-", ""), "hex").toString("base64url");
  await run(installed.java, java("kafka.tools.StorageTool", "format", "-t", cluster, "-c", file));
  let server: ServerProcess;
  const begin = async (): Promise<void> => {
    server = new ServerProcess(installed.java, java("kafka.Kafka", file));
    await server.waitUntil(() => accepts(port));
  };
  await begin();
  return {
    url: `kafka://127.0.0.1:${port}`,
    port,
    begin,
    end: (signal) => server.stop(signal),
    signal: (signal) => server.signal(signal),
    stop: async () => {
      await server.stop("SIGKILL");
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Java and Maven by their Debian packages, if they have to and may be installed; the broker by Maven. */
async function install(): Promise<{ readonly java: string } | Missing> {
  try {
    const wanted = { folders: [], variable: VARIABLE };
    const java = await findProgram({ ...wanted, program: "java", debianPackage: "default-jre-headless" });
    if (existsSync(JARS)) return { java };
    const maven = await findProgram({ ...wanted, program: "mvn", debianPackage: "maven" });
    // Two test files that find it missing must not write to one repository of Maven at once.
    await withLock(() => (existsSync(JARS) ? undefined : download(maven)));
    return { java };
  } catch (error) {
    // What the program has said, where it has: the command that failed explains nothing.
    const {
      stderr = "",
      stdout = "",
      message,
    } = error as Error & { readonly stderr?: string; readonly stdout?: string };
    const said = [stderr, stdout, message].map((text) => text.trim().split("\n")[0]).find((line) => line !== "");
    return { missing: `no Kafka broker could be installed, and ${VARIABLE} names none: ${said}` };
  }
}

async function download(maven: string): Promise<void> {
  await mkdir(join(JARS, ".."), { recursive: true });
  const folder = await mkdtemp(`${JARS}-`);
  const goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", `-DoutputDirectory=${folder}`];
  try {
    await run(maven, ["-q", "-B", "-f", POM, ...goal], { timeout: DOWNLOADED_WITHIN_MS });
    // At once or not at all: half of it would be taken for all.
    await rename(folder, JARS);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

interface Places {
  readonly port: number;
  readonly controllerPort: number;
  readonly data: string;
}

function propertiesOf({ port, controllerPort, data }: Places): string {
  const properties = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": `1@127.0.0.1:${controllerPort}`,
    listeners: `PLAINTEXT://127.0.0.1:${port},CONTROLLER://127.0.0.1:${controllerPort}`,
    "advertised.listeners": `PLAINTEXT://127.0.0.1:${port}`,
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "log.dirs": data,
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
  };
  return Object.entries(properties)
    .map(([name, value]) => `${name}=${value}\n`)
    .join("");
}

/** It listens when it is ready to answer. */
function accepts(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect(port, "127.0.0.1");
  socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
  return promise.finally(() => socket.destroy());
}
