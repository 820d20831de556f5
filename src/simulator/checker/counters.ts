import { ENGINE_HANDLERS } from "../../definition/workflow.ts";
import { executionOf, isExecution } from "./evidence.ts";
import { type Invariant, placeOf } from "./invariant.ts";
import type { NodeStory } from "./node-story.ts";
import { hasBegun, type Story } from "./story.ts";

/** The lists show what the journals say. */
const countersEqual: Invariant = {
  id: "I36",
  name: "counters equal",
  world({ world }, stories, found) {
    const seen = new Set<string>();
    for (const header of world.remains.headers) {
      if (!isExecution(header.entity)) continue;
      const execution = executionOf(header.entity);
      const story = stories.get(execution);
      if (seen.has(execution)) found("It is listed twice", { execution });
      seen.add(execution);
      if (story === undefined) {
        found("It is listed, and has no journal", { execution });
        continue;
      }
      const ended = story.ended?.status;
      const expected = ended === undefined ? "open" : ended === "completed" ? "endedWell" : "endedBadly";
      const isRightStatus = ended === undefined ? !TERMINAL.has(header.status) : header.status === ended.toUpperCase();
      if (header.class !== expected || !isRightStatus || header.version > story.version) {
        const listed = `${header.class} ${header.status} at version ${header.version}`;
        found(`It is listed as ${listed}, and its journal says ${ended ?? "open"} at ${story.version}`, { execution });
      }
    }
    for (const [execution, story] of stories) {
      if (story.accepted !== null && !seen.has(execution))
        found("It has a journal, and is listed nowhere", { execution });
    }
  },
};

const TERMINAL: ReadonlySet<string> = new Set(["COMPLETED", "PARTIAL", "FAILED", "CANCELLED"]);

/** Never more nodes are out than the workflow allows. */
const slots: Invariant = {
  id: "I37",
  name: "slots",
  before(step, found) {
    const { story, event, node } = step;
    if (event.kind !== "taskDispatched" || node === undefined || node.out) return;
    const limit = story.shape!.workflow.max_parallel_nodes;
    if (limit === null || story.outCount < limit) return;
    found(`It was dispatched while ${story.outCount} nodes were out, and ${limit} may be`, placeOf(step));
  },
};

/** Of one execution's nodes that have long been ready for a queue, those of higher priority are dispatched first. */
const priorities: Invariant = {
  id: "M11",
  name: "priorities",
  before(step, found) {
    const { story, event, node, commit } = step;
    if (event.kind !== "taskDispatched" || node === undefined || node.item !== null || node.out) return;
    const first = commit.entry.records.find(({ entity }) => entity === story.entity)!.version;
    const { queue, priority } = node.spec;
    const passed = story.nodes.find(
      (other) =>
        other.spec.queue === queue &&
        other.spec.priority > priority &&
        isReady(other, story) &&
        !other.atGate &&
        other.joinedVersion < first,
    );
    // What is large may have to be fetched first.
    if (passed === undefined || readsLarge(story)) return;
    found(`It was dispatched before ${passed.instance}, whose priority is ${passed.spec.priority}`, placeOf(step));
  },
  world({ surviving, tokens, world }, _stories, found) {
    if (world.lossy || world.volatileTasks !== false) return;
    const struck = new Set<string>();
    for (const entry of world.history) if (entry.log === "nemesis" && entry.kind === "fault") struck.add(entry.target);
    const given = surviving.flatMap(({ entry }) =>
      entry.tasks.flatMap((task) => {
        const [first] = tokens.get(task.token)?.delivered ?? [];
        return first === undefined
          ? []
          : [{ ...task, queuedAt: entry.at, givenAt: first.entry.at, to: first.entry.worker }];
      }),
    );
    for (const task of given) {
      const passed = given.find(
        (other) =>
          other.queue === task.queue &&
          other.priority > task.priority &&
          other.queuedAt < task.givenAt - ON_ITS_WAY_MS &&
          other.givenAt > task.givenAt + ON_ITS_WAY_MS &&
          !struck.has(other.to) &&
          !struck.has(task.to),
      );
      if (passed !== undefined)
        found(`The task ${task.token} was given away before ${passed.token}, which goes before it`);
    }
  },
};

/** Between a lease and what a worker that is well makes of it lies no more than a message. */
const ON_ITS_WAY_MS = 1_000;

/** From this many characters on a value may have left memory, and has to be fetched before it is read. */
const LARGE = 1_000;

/** Something that its nodes may read is kept apart from the journal, or only there. */
function readsLarge(story: Story): boolean {
  const { item, nodes } = story.accepted?.around ?? {};
  return [story.input, item, nodes, ...story.nodes.map(({ output }) => output)].some(
    (value) => value && ("blob" in value || JSON.stringify(value).length > LARGE),
  );
}

/** It only waits for its turn, and did so before: nothing has to be evaluated or judged. */
function isReady(node: NodeStory, story: Story): boolean {
  const isOurs = node.generation === story.generation && node.end === null && !ENGINE_HANDLERS.has(node.spec.handler);
  return isOurs && node.joined === "run" && !hasBegun(node) && node.spec.condition === undefined;
}

export const COUNTERS: readonly Invariant[] = [countersEqual, slots, priorities];
