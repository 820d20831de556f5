import { executionOf, isExecution } from "./evidence.ts";
import { type Invariant, placeOf } from "./invariant.ts";

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

export const COUNTERS: readonly Invariant[] = [countersEqual, slots];
