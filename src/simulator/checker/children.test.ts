import { describe } from "vitest";
import type { Json } from "../../json/json.ts";
import type { World } from "../history.ts";
import { plainWorld } from "./clean-worlds.ts";
import { Family, familyWorld, orphanedWorld } from "./control-worlds.ts";
import { change, changeEvent, itReports } from "./test-world.ts";

/** The tally's only record, with its event changed or repeated. */
function counted(times: number, status = "completed"): World {
  const event = { kind: "childCounted", atMs: 1_020, child: "execution/e1:1", status } as never;
  const events = Array.from({ length: times }, () => event);
  return change(plainWorld(), "commit", 3, { records: [{ entity: "tally/t", version: 1, events }] });
}

function mailed(patch: Readonly<Record<string, string>>, times = 1): World {
  const said = { kind: "childEnded", child: "execution/e1", generation: 1, instance: "e1", status: "completed" };
  const body = { ...said, ...patch };
  const mail = Array.from({ length: times }, (_, i) => ({ to: "tally/t", from: "execution/e1", id: `m${i}`, body }));
  return change(plainWorld(), "commit", 2, { mail });
}

/** The only piece of mail of a commit, changed. */
function rewritten(world: World, nth: number, patch: (body: Readonly<Record<string, Json>>) => Json): World {
  const commits = world.history.filter((entry) => entry.kind === "commit");
  const mail = commits[nth]!.mail.map((piece) => ({ ...piece, body: patch(piece.body as Record<string, Json>) }));
  return change(world, "commit", nth, { mail });
}

describe("children", () => {
  itReports([
    ["I45", "the parent is not told", () => mailed({}, 0)],
    ["I45", "the parent is told twice", () => mailed({}, 2)],
    ["I45", "the parent is told another status", () => mailed({ status: "failed" })],
    ["I45", "the parent never counts it", () => counted(0)],
    ["I45", "the parent counts it twice", () => counted(2)],
    ["I45", "the parent counts another status", () => counted(1, "failed")],
    ["I45", "a child is waited for, and not called", () => change(familyWorld(), "commit", 0, { mail: [] }), ["I8"]],
    [
      "I45",
      "a child is called with another input",
      () => rewritten(familyWorld(), 0, (body) => ({ ...body, input: { json: 4 } })),
      ["I8"],
    ],
    [
      "I45",
      "a child may have more below it than its parent",
      () =>
        rewritten(familyWorld(), 0, (body) => ({
          ...body,
          parent: { ...(body["parent"] as object), allowance: 10_000 },
        })),
      ["I8"],
    ],
    ["I45", "the answer to an old call is taken", () => rewritten(familyWorld(), 6, (body) => ({ ...body, call: 1 }))],
    [
      "I45",
      "another output is taken than the child gave",
      () => changeEvent(familyWorld(), "nodeCompleted", 0, { output: { json: 5 } }),
    ],
    ["I45", "the child gives another output than it has", () => otherOutput()],
    ["I45", "a child is left behind", leftBehind],
    ["I45", "a cancel is only said to be sent", () => change(orphanedWorld(), "commit", 2, { mail: [] }), ["I8"]],
    [
      "I8",
      "a child is accepted that nobody has called",
      () => changeEvent(familyWorld(), "accepted", 1, { bodyHash: "c" }),
    ],
    [
      "C5-operations",
      "a child opens a generation that its parent has not called for",
      () => changeEvent(familyWorld(), "generationOpened", 1, { call: 3 }),
      ["I45"],
    ],
  ]);
});

function otherOutput(): World {
  const world = changeEvent(familyWorld(), "nodeCompleted", 0, { output: { json: { a: 2 } } });
  return rewritten(world, 6, (body) => ({ ...body, output: { json: { a: 2 } } }));
}

/** The parent is cancelled, and its child runs on to its end. */
function leftBehind(): World {
  const family = new Family();
  const { world } = family;
  world.submit().acquire();
  const [waits, start] = family.call(1);
  world
    .commit([world.accepted(), world.started(), waits], { mail: [start] })
    .submitted()
    .cancel("r1");
  world.commit([world.applied("r1"), world.ended("cancelled", "cancel")]).cancelled("r1");
  family.asChild();
  world.commit([family.accepted(), world.started(), world.dispatched("a")]).work("a", 1);
  const mail = [family.told(1, "completed", { a: 1 })];
  return world.commit([world.completed("a", 1), world.ended()], { mail }).world();
}
