import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Random } from "../../src/simulator/random.ts";
import { BIN, Child } from "../world/child.ts";
import type { Glances } from "../world/glances.ts";
import type { People } from "../world/people.ts";
import { type Plan, PLAN_VARIABLE } from "../world/plan.ts";
import { type Archived, readArchive } from "./archived.ts";
import type { Member } from "./member.ts";
import type { StoreLoss } from "./nemesis.ts";
import { PARTITIONS, type SharedStore } from "./stores.ts";

/** What `millrace recover --json` says. */
export interface RecoveryReport {
  readonly executions: number;
  readonly tasks: number;
  readonly calls: number;
  readonly present: number;
  readonly names: number;
  readonly definitions: number;
  readonly unreadable: readonly string[];
  readonly partitions: readonly { readonly partition: number; readonly heard_at: string; readonly behind: number }[];
}

/** A store that was lost and made again from its archive. */
export interface Loss extends StoreLoss {
  /** Those who had used it before. */
  readonly first: People;
  /** What some had seen of executions that were over, before it and after it. */
  readonly seen: { readonly before: Glances; readonly after: Glances };
  /** What the archive had when all had ended. */
  readonly archived: Archived;
  readonly report: RecoveryReport;
  /** Where the one who made it again wrote down what it did. */
  readonly log: string;
}

export interface Bereaved {
  readonly store: SharedStore;
  readonly members: readonly Member[];
  readonly folder: string;
  readonly mutant: string | undefined;
  readonly random: Random;
}

/** From the loss of a store until it is there again and everybody has been told to start. */
export async function outlive(
  loss: StoreLoss,
  { store, members, folder, mutant, random }: Bereaved,
): Promise<Pick<Loss, "archived" | "report" | "log">> {
  const others = members.filter((member) => member !== loss.sleeper);
  await Promise.all(others.map((member) => member.endsOfLoss()));
  await random.pick(others.filter(({ role }) => role === "engine" || role === "api")).startsInVain();
  const archive = store.archive!.open();
  const archived = await readArchive(archive);
  await archive.close();
  const recovered = await recover(store, folder, mutant);
  // Who has slept through it finds another store than it had.
  loss.sleeper?.resume();
  loss.sleeper?.proxy.heal();
  await loss.sleeper?.endsOfLoss();
  for (const member of members) member.startAgain();
  return { archived, ...recovered };
}

async function recover(
  store: SharedStore,
  folder: string,
  mutant: string | undefined,
): Promise<Pick<Loss, "report" | "log">> {
  const file = join(folder, "recover");
  const log = `${file}.log`;
  const plan: Plan = { log, ...(mutant !== undefined && { mutant }) };
  const archive = store.archive!;
  const from = archive.url(archive.service.port);
  const child = new Child({
    hook: join(import.meta.dirname, "hook.ts"),
    args: [BIN, "recover", "--from", from, "--store", store.url(store.service.port), "--json"],
    cwd: folder,
    transcript: `${file}.txt`,
    env: { [PLAN_VARIABLE]: JSON.stringify(plan), MILLRACE_PARTITIONS: String(PARTITIONS) },
  });
  const { code } = await child.exited;
  const said = readFileSync(`${file}.txt`, "utf8");
  if (code !== 0) throw new Error(`millrace recover ended with ${code}: ${said}`);
  return { report: JSON.parse(said) as RecoveryReport, log };
}
