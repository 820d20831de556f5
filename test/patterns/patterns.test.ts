import { readFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Bench, shown } from "./bench.ts";
import { PATTERNS, patternsPage, titleOf } from "./table.ts";

let bench: Bench;
beforeEach(async () => {
  bench = await new Bench().open();
});
afterEach(() => bench.close());

/** The patterns that have a test, by number. */
const tested: number[] = [];

function pattern(number: number, run: () => Promise<void>): void {
  tested.push(number);
  test(titleOf(PATTERNS.find((one) => one.number === number)!), run);
}

describe("basic control flow", () => {
  pattern(1, async () => {
    const view = await bench.run(`
      name: sequence
      nodes:
        first: { handler: step }
        second: { handler: step, dependencies: [first] }
        third: { handler: step, dependencies: [second] }
    `);
    expect(view.status).toBe("COMPLETED");
    expect(bench.log).toEqual(["first", "second", "third"].flatMap((id) => [`${id} begins`, `${id} ends`]));
  });

  const split = `
    name: split and join
    nodes:
      before: { handler: step }
      left: { handler: step, dependencies: [before], config: { hold: left } }
      right: { handler: step, dependencies: [before], config: { hold: right } }
      after: { handler: step, dependencies: [left, right] }
  `;

  pattern(2, async () => {
    const id = await bench.start(split);
    await bench.begun("left", "right");
    expect(bench.most).toBe(2);
    bench.let("left", "right");
    expect((await bench.ended(id)).status).toBe("COMPLETED");
  });

  pattern(3, async () => {
    const id = await bench.start(split);
    bench.let("right");
    const waiting = await bench.shows(id, { right: "COMPLETED" });
    expect(waiting.nodes["after"]!.status).toBe("PENDING");
    bench.let("left");
    await bench.ended(id);
    expect(bench.log.at(-2)).toBe("after begins");
    expect(bench.count("after begins")).toBe(1);
  });

  const choice = `
    name: choice
    nodes:
      weigh:
        handler: router
        config:
          routes:
            - { when: "input.kg < 10", to: small }
            - { when: "input.kg < 100", to: large }
          else: freight
      small: { handler: step, dependencies: [weigh] }
      large: { handler: step, dependencies: [weigh] }
      freight: { handler: step, dependencies: [weigh] }
      send: { handler: step, dependencies: [small, large, freight] }
  `;

  pattern(4, async () => {
    for (const [kg, chosen] of [
      [5, "small"],
      [50, "large"],
      [500, "freight"],
    ] as const) {
      const { nodes } = await bench.run(choice, { kg });
      const ran = ["small", "large", "freight"].filter((id) => nodes[id]!.status === "COMPLETED");
      expect(ran).toEqual([chosen]);
    }
  });

  pattern(5, async () => {
    const view = await bench.run(choice, { kg: 50 });
    expect(shown(view)).toEqual({
      weigh: "COMPLETED",
      small: "SKIPPED route",
      large: "COMPLETED",
      freight: "SKIPPED route",
      send: "COMPLETED",
    });
    expect(bench.log.slice(-4)).toEqual(["large begins", "large ends", "send begins", "send ends"]);
  });
});

describe("branching and synchronization", () => {
  const menu = `
    name: menu
    nodes:
      order:
        handler: router
        config:
          mode: inclusive
          routes:
            - { when: input.soup, to: soup }
            - { when: input.fish, to: fish }
      soup: { handler: step, dependencies: [order], config: { hold: soup } }
      fish: { handler: step, dependencies: [order], config: { hold: fish } }
      bill: { handler: step, dependencies: [soup, fish] }
  `;

  pattern(6, async () => {
    bench.let("soup", "fish");
    const both = await bench.run(menu, { soup: true, fish: true });
    expect([both.nodes["soup"]!.status, both.nodes["fish"]!.status]).toEqual(["COMPLETED", "COMPLETED"]);
    const one = await bench.run(menu, { soup: false, fish: true });
    expect([one.nodes["soup"]!.status, one.nodes["fish"]!.status]).toEqual(["SKIPPED", "COMPLETED"]);
  });

  pattern(7, async () => {
    const both = await bench.start(menu, { soup: true, fish: true });
    bench.let("fish");
    expect((await bench.shows(both, { fish: "COMPLETED" })).nodes["bill"]!.status).toBe("PENDING");
    // With one branch chosen there is only that one to wait for.
    const one = await bench.run(menu, { soup: false, fish: true });
    expect(one.nodes["bill"]!.status).toBe("COMPLETED");
    bench.let("soup");
    expect((await bench.ended(both)).nodes["bill"]!.status).toBe("COMPLETED");
    expect(bench.count("bill begins")).toBe(2);
  });

  const firstOf = (join: string): string => `
    name: offers
    nodes:
      ask: { handler: step }
      a: { handler: step, dependencies: [ask], config: { hold: a } }
      b: { handler: step, dependencies: [ask], config: { hold: b } }
      c: { handler: step, dependencies: [ask], config: { hold: c } }
      take: { handler: step, dependencies: [a, b, c], join: "${join}" }
  `;

  pattern(9, async () => {
    const id = await bench.start(firstOf("one_success"));
    await bench.begun("a", "b", "c");
    bench.let("b");
    expect(shown(await bench.shows(id, { take: "COMPLETED" }))).toMatchObject({ b: "COMPLETED" });
    bench.let("a", "c");
    expect((await bench.ended(id)).status).toBe("COMPLETED");
    expect(bench.count("take begins")).toBe(1);
  });

  pattern(28, async () => {
    const id = await bench.start(firstOf("one_success"));
    bench.let("a", "b", "c");
    await bench.ended(id);
    expect(bench.count("take begins")).toBe(1);
    await bench.send(id, { kind: "retry", scope: "descendants", from: "ask" });
    expect((await bench.ended(id)).generation).toBe(2);
    expect(bench.count("take begins")).toBe(2);
  });

  const race = (join: string): string => `
    name: race
    nodes:
      a: { handler: step, config: { hold: a } }
      b: { handler: step, config: { hold: b } }
      c: { handler: step, config: { hold: c } }
      won:
        handler: end
        dependencies: [a, b, c]
        join: "${join}"
        config: { output: ['{{ a | default("-") }}', '{{ b | default("-") }}', '{{ c | default("-") }}'] }
  `;
  const caller = `
    name: caller
    nodes:
      race: { handler: workflow, config: { name: race } }
      after: { handler: step, dependencies: [race], config: { gives: "{{ race }}" } }
  `;

  pattern(29, async () => {
    await bench.publish(race("one_success"));
    const id = await bench.start(caller);
    const child = await bench.childOf(id, "race");
    await bench.begun("a", "b", "c");
    bench.let("b");
    expect(await bench.ended(id)).toMatchObject({ status: "COMPLETED", output: { after: ["-", "b", "-"] } });
    expect(shown(await bench.view(child))).toEqual({
      a: "CANCELLED end",
      b: "COMPLETED",
      c: "CANCELLED end",
      won: "COMPLETED",
    });
    expect(bench.log).not.toContain("a ends");
  });

  pattern(30, async () => {
    const id = await bench.start(firstOf("quorum:2"));
    bench.let("a");
    expect((await bench.shows(id, { a: "COMPLETED" })).nodes["take"]!.status).toBe("PENDING");
    bench.let("c");
    await bench.shows(id, { take: "COMPLETED" });
    expect(bench.log).not.toContain("b ends");
    bench.let("b");
    expect((await bench.ended(id)).status).toBe("COMPLETED");
    expect(bench.count("take begins")).toBe(1);
  });

  pattern(31, async () => {
    const id = await bench.start(firstOf("quorum:2"));
    bench.let("a", "b", "c");
    await bench.ended(id);
    await bench.send(id, { kind: "retry", scope: "descendants", from: "ask" });
    await bench.ended(id);
    expect(bench.count("take begins")).toBe(2);
  });

  pattern(32, async () => {
    await bench.publish(race("quorum:2"));
    const id = await bench.start(caller);
    const child = await bench.childOf(id, "race");
    await bench.begun("a", "b", "c");
    bench.let("a", "c");
    expect(await bench.ended(id)).toMatchObject({ status: "COMPLETED", output: { after: ["a", "-", "c"] } });
    expect((await bench.view(child)).nodes["b"]).toMatchObject({ status: "CANCELLED", reason: "end" });
  });

  pattern(33, async () => {
    // Two joins whose branches come from splits that do not match, and a trigger that comes twice before it is needed.
    const id = await bench.start(`
      name: assembly
      nodes:
        wood: { handler: step, config: { hold: wood } }
        steel: { handler: step, config: { hold: steel } }
        cut: { handler: step, dependencies: [wood] }
        part_1: { handler: wait, config: { signal: part } }
        part_2: { handler: wait, dependencies: [part_1], config: { signal: part } }
        first: { handler: step, dependencies: [cut, part_1, steel] }
        second: { handler: step, dependencies: [wood, part_2], config: { gives: "{{ part_2 }}" } }
    `);
    for (const json of ["p1", "p2"]) await bench.send(id, { kind: "signal", name: "part", data: { json } });
    bench.let("wood");
    expect((await bench.shows(id, { second: "COMPLETED" })).nodes["first"]!.status).toBe("PENDING");
    bench.let("steel");
    expect(await bench.ended(id)).toMatchObject({ status: "COMPLETED", output: { first: "first", second: "p2" } });
    expect([bench.count("first begins"), bench.count("second begins")]).toEqual([1, 1]);
  });

  pattern(37, async () => {
    // The second choice stands inside a branch of the first, and all branches meet at once.
    const view = await bench.run(
      `
      name: nested
      nodes:
        kind: { handler: router, config: { routes: [{ when: input.person, to: person }], else: [company, register] } }
        person: { handler: step, dependencies: [kind] }
        company: { handler: router, dependencies: [kind], config: { routes: [{ when: input.large, to: audit }], else: trust } }
        register: { handler: step, dependencies: [kind] }
        audit: { handler: step, dependencies: [company] }
        trust: { handler: step, dependencies: [company] }
        open: { handler: step, dependencies: [person, register, audit, trust] }
    `,
      { person: false, large: true },
    );
    expect(shown(view)).toMatchObject({
      person: "SKIPPED route",
      register: "COMPLETED",
      audit: "COMPLETED",
      trust: "SKIPPED route",
      open: "COMPLETED",
    });
    expect(bench.count("open begins")).toBe(1);
    expect(bench.log.at(-2)).toBe("open begins");
  });

  pattern(38, async () => {
    // No splits that match: whether anything can still arrive at `last` follows from branches that cross.
    const id = await bench.start(
      `
      name: crossing
      nodes:
        a: { handler: step }
        b: { handler: step, config: { hold: b } }
        never: { handler: step, dependencies: [a], condition: "input.no" }
        behind: { handler: step, dependencies: [never] }
        crossed: { handler: step, dependencies: [a, b] }
        rare: { handler: step, dependencies: [b], condition: "input.no" }
        last: { handler: step, dependencies: [behind, crossed, rare] }
    `,
      { no: false },
    );
    expect((await bench.shows(id, { behind: "SKIPPED" })).nodes["last"]!.status).toBe("PENDING");
    bench.let("b");
    expect((await bench.ended(id)).nodes["last"]!.status).toBe("COMPLETED");
    expect(bench.count("last begins")).toBe(1);
  });

  const threads = `
    name: threads
    nodes:
      each:
        handler: map
        config:
          items: [red, green, blue]
          nodes:
            wash: { handler: step, config: { hold: "wash {{ item }}" } }
            dry: { handler: step, dependencies: [wash], config: { gives: "dry {{ item }}" } }
      fold: { handler: step, dependencies: [each], config: { gives: "{{ each }}" } }
  `;

  pattern(41, async () => {
    bench.let("wash red", "wash green", "wash blue");
    const view = await bench.run(threads);
    expect(view.output).toEqual({ fold: [{ dry: "dry red" }, { dry: "dry green" }, { dry: "dry blue" }] });
    expect(bench.count("fold begins")).toBe(1);
  });

  pattern(42, async () => {
    const id = await bench.start(threads);
    while (bench.count("wash begins") < 3) await bench.begun("wash");
    expect(bench.most).toBe(3);
    bench.let("wash green");
    await bench.begun("dry");
    expect(bench.count("dry begins")).toBe(1);
    bench.let("wash red", "wash blue");
    expect((await bench.ended(id)).nodes["each"]!.items).toEqual({ total: 3, completed: 3, failed: 0 });
  });
});

describe("multiple instances", () => {
  pattern(12, async () => {
    const id = await bench.start(`
      name: newsletters
      nodes:
        write: { handler: step }
        send: { handler: map, dependencies: [write], config: { items: [1, 2], handler: step, config: { hold: sent } } }
        publish: { handler: step, dependencies: [write] }
    `);
    const view = await bench.shows(id, { publish: "COMPLETED", send: "RUNNING" });
    expect(view.status).toBe("RUNNING");
    bench.let("sent");
    expect((await bench.ended(id)).status).toBe("COMPLETED");
  });

  pattern(13, async () => {
    const view = await bench.run(`
      name: three reviews
      nodes:
        reviews: { handler: map, config: { items: [ann, bob, eve], handler: step, config: { gives: "by {{ item }}" } } }
        sum: { handler: step, dependencies: [reviews] }
    `);
    expect(view.nodes["reviews"]!.output).toEqual({ json: ["by ann", "by bob", "by eve"] });
    expect(bench.log.at(-2)).toBe("sum begins");
  });

  const orders = `
    name: orders
    nodes:
      list: { handler: step, config: { gives: "{{ input.orders }}" } }
      ship: { handler: map, dependencies: [list], config: { items: "{{ list }}", handler: step, config: { gives: "{{ item.id }}" } } }
      report: { handler: step, dependencies: [ship], config: { gives: "{{ ship | length }}" } }
  `;

  pattern(14, async () => {
    for (const count of [0, 1, 7]) {
      const view = await bench.run(orders, { orders: Array.from({ length: count }, (_, id) => ({ id })) });
      expect(view.output).toEqual({ report: count });
      expect(view.nodes["ship"]!.output).toEqual({ json: Array.from({ length: count }, (_, id) => id) });
    }
  });

  const votes = (last: string): string => `
    name: votes
    nodes:
      ann: { handler: step, config: { hold: ann } }
      bob: { handler: step, config: { hold: bob } }
      eve: { handler: step, config: { hold: eve } }
      decided: { handler: ${last}, dependencies: [ann, bob, eve], join: "quorum:2" }
  `;

  pattern(34, async () => {
    const id = await bench.start(votes("step"));
    await bench.begun("ann", "bob", "eve");
    bench.let("ann", "eve");
    await bench.shows(id, { decided: "COMPLETED" });
    bench.let("bob");
    expect(shown(await bench.ended(id))).toEqual({
      ann: "COMPLETED",
      bob: "COMPLETED",
      eve: "COMPLETED",
      decided: "COMPLETED",
    });
    expect(bench.count("decided begins")).toBe(1);
  });

  pattern(35, async () => {
    await bench.publish(votes("end"));
    const id = await bench.start(`
      name: poll
      nodes:
        votes: { handler: workflow, config: { name: votes } }
        after: { handler: step, dependencies: [votes] }
    `);
    const child = await bench.childOf(id, "votes");
    await bench.begun("ann", "bob", "eve");
    bench.let("ann", "eve");
    expect((await bench.ended(id)).status).toBe("COMPLETED");
    expect((await bench.view(child)).nodes["bob"]).toMatchObject({ status: "CANCELLED", reason: "end" });
  });
});

describe("state-based", () => {
  pattern(16, async () => {
    await bench.publish(`
      name: answer
      nodes:
        yes: { handler: wait, config: { signal: accept } }
        no: { handler: wait, config: { signal: refuse } }
        first:
          handler: end
          dependencies: [yes, no]
          join: one_success
          config: { output: { accepted: "{{ has(yes.by) }}" } }
    `);
    const offer = `
      name: offer
      nodes:
        answer: { handler: workflow, config: { name: answer } }
        route: { handler: router, dependencies: [answer], config: { routes: [{ when: answer.accepted, to: ship }], else: drop } }
        ship: { handler: step, dependencies: [route] }
        drop: { handler: step, dependencies: [route] }
    `;
    const id = await bench.start(offer);
    const child = await bench.childOf(id, "answer");
    await bench.shows(child, { yes: "WAITING", no: "WAITING" });
    await bench.send(child, { kind: "signal", name: "accept", data: { json: { by: "ann" } } });
    expect(shown(await bench.ended(id))).toMatchObject({ ship: "COMPLETED", drop: "SKIPPED route" });
    expect((await bench.view(child)).nodes["no"]).toMatchObject({ status: "CANCELLED", reason: "end" });

    // Signal or timer: what comes first decides.
    const patient = `
      name: patience
      nodes:
        paid: { handler: wait, config: { signal: paid, timeout_seconds: 0.05 } }
        ship: { handler: step, dependencies: [paid] }
        remind: { handler: step, dependencies: [{ id: paid, on: failed }] }
    `;
    const late = await bench.run(patient);
    expect(shown(late)).toMatchObject({ paid: "FAILED", ship: "SKIPPED upstream_failed", remind: "COMPLETED" });
    expect(late).toMatchObject({ status: "COMPLETED" });
  });

  pattern(17, async () => {
    const view = await bench.run(`
      name: one at a time
      max_parallel_nodes: 1
      nodes:
        lab: { handler: step }
        results: { handler: step, dependencies: [lab] }
        scan: { handler: step }
        picture: { handler: step, dependencies: [scan] }
        leave: { handler: step, dependencies: [results, picture] }
    `);
    expect(view.status).toBe("COMPLETED");
    expect(bench.most).toBe(1);
    const begins = (id: string): number => bench.log.indexOf(`${id} begins`);
    expect(begins("lab")).toBeLessThan(begins("results"));
    expect(begins("scan")).toBeLessThan(begins("picture"));
  });

  const milestone = `
    name: registration
    nodes:
      opened: { handler: wait, config: { signal: opened } }
      closed: { handler: wait, config: { signal: closed } }
      register:
        handler: step
        dependencies: [opened, closed]
        join: one_success
        condition: "!has(closed.at)"
  `;

  pattern(18, async () => {
    const inTime = await bench.start(milestone);
    await bench.send(inTime, { kind: "signal", name: "opened", data: { json: { at: 1 } } });
    await bench.shows(inTime, { register: "COMPLETED" });
    await bench.send(inTime, { kind: "signal", name: "closed", data: { json: { at: 2 } } });
    expect((await bench.ended(inTime)).nodes["register"]!.status).toBe("COMPLETED");

    const tooLate = await bench.start(milestone);
    await bench.send(tooLate, { kind: "signal", name: "closed", data: { json: { at: 1 } } });
    await bench.shows(tooLate, { register: "SKIPPED" });
    await bench.send(tooLate, { kind: "signal", name: "opened", data: { json: { at: 2 } } });
    expect(shown(await bench.ended(tooLate))["register"]).toBe("SKIPPED condition");
  });

  pattern(39, async () => {
    for (const section of ["withdraw", "deposit"]) {
      await bench.publish(`
        name: ${section}
        nodes:
          ${section}_check: { handler: step }
          ${section}_book: { handler: step, dependencies: [${section}_check] }
      `);
    }
    const view = await bench.run(`
      name: account
      nodes:
        sections:
          handler: map
          config: { items: [withdraw, deposit], handler: workflow, config: { name: "{{ item }}" }, max_concurrency: 1 }
    `);
    expect(view.status).toBe("COMPLETED");
    expect(bench.most).toBe(1);
    expect(bench.log.filter((entry) => entry.endsWith("begins"))).toEqual([
      "withdraw_check begins",
      "withdraw_book begins",
      "deposit_check begins",
      "deposit_book begins",
    ]);
  });

  pattern(40, async () => {
    const view = await bench.run(`
      name: any order
      max_parallel_nodes: 1
      nodes:
        a: { handler: step }
        b: { handler: step }
        c: { handler: step }
        after: { handler: step, dependencies: [a, b, c] }
    `);
    expect(view.status).toBe("COMPLETED");
    expect(bench.most).toBe(1);
    expect(["a", "b", "c", "after"].map((id) => bench.count(`${id} begins`))).toEqual([1, 1, 1, 1]);
  });
});

describe("cancellation and force completion", () => {
  pattern(19, async () => {
    await bench.publish(`
      name: search
      nodes:
        search: { handler: step, config: { hold: search } }
    `);
    const id = await bench.start(`
      name: find
      nodes:
        search: { handler: workflow, config: { name: search } }
        other: { handler: step, config: { hold: other } }
        instead: { handler: step, dependencies: [{ id: search, on: failed }] }
    `);
    const child = await bench.childOf(id, "search");
    await bench.begun("search", "other");
    await bench.send(child, { kind: "cancel" });
    await bench.shows(id, { instead: "COMPLETED" });
    bench.let("other");
    expect(await bench.ended(id)).toMatchObject({ status: "COMPLETED" });
    expect(bench.log).not.toContain("search ends");
  });

  pattern(20, async () => {
    const id = await bench.start(`
      name: case
      nodes:
        a: { handler: step, config: { hold: a } }
        w: { handler: wait, config: { signal: s } }
        b: { handler: step, dependencies: [a, w] }
    `);
    await bench.begun("a");
    await bench.send(id, { kind: "cancel" });
    const view = await bench.ended(id);
    expect(view.status).toBe("CANCELLED");
    expect(shown(view)).toEqual({ a: "CANCELLED cancel", w: "CANCELLED cancel", b: "CANCELLED cancel" });
  });

  pattern(25, async () => {
    await bench.publish(`
      name: region
      nodes:
        a: { handler: step, config: { hold: a } }
        b: { handler: step, dependencies: [a] }
        c: { handler: step, config: { hold: c } }
        stop: { handler: wait, config: { signal: stop } }
        stopped: { handler: end, dependencies: [stop], config: { output: { stopped: true } } }
    `);
    const id = await bench.start(`
      name: with a region
      nodes:
        region: { handler: workflow, config: { name: region } }
        outside: { handler: step, config: { hold: outside } }
        after: { handler: step, dependencies: [region], config: { gives: "{{ region.stopped }}" } }
    `);
    const child = await bench.childOf(id, "region");
    await bench.begun("a", "c", "outside");
    await bench.send(child, { kind: "signal", name: "stop", data: { json: null } });
    await bench.shows(id, { after: "COMPLETED", outside: "RUNNING" });
    bench.let("outside");
    expect(await bench.ended(id)).toMatchObject({ status: "COMPLETED", output: { after: true } });
    expect(shown(await bench.view(child))).toMatchObject({
      a: "CANCELLED end",
      b: "CANCELLED end",
      c: "CANCELLED end",
    });
  });

  const many = (more: string): string => `
    name: many
    nodes:
      all: { handler: map, config: { items: [1, 2, 3], handler: step, config: { hold: "item {{ item }}" } } }
      ${more}
  `;

  pattern(26, async () => {
    await bench.publish(many(""));
    const id = await bench.start(`
      name: around
      nodes:
        many: { handler: workflow, config: { name: many } }
        instead: { handler: step, dependencies: [{ id: many, on: failed }] }
        other: { handler: step }
    `);
    const child = await bench.childOf(id, "many");
    while (bench.count("all begins") < 3) await bench.begun("all");
    bench.let("item 2");
    await bench.until(child, ({ nodes }) => nodes["all"]!.items?.completed === 1);
    await bench.send(child, { kind: "cancel" });
    expect((await bench.ended(id)).status).toBe("COMPLETED");
    expect((await bench.view(child)).nodes["all"]).toMatchObject({ status: "CANCELLED", items: { completed: 1 } });
    expect(bench.count("all ends")).toBe(1);
  });

  pattern(27, async () => {
    await bench.publish(
      many(`enough: { handler: wait, config: { signal: enough } }
      done: { handler: end, dependencies: [enough], config: { output: { complete: false } } }`),
    );
    const id = await bench.start(`
      name: around
      nodes:
        many: { handler: workflow, config: { name: many } }
        after: { handler: step, dependencies: [many], config: { gives: "{{ many.complete }}" } }
    `);
    const child = await bench.childOf(id, "many");
    bench.let("item 1");
    await bench.until(child, ({ nodes }) => nodes["all"]!.items?.completed === 1);
    await bench.send(child, { kind: "signal", name: "enough", data: { json: null } });
    expect(await bench.ended(id)).toMatchObject({ status: "COMPLETED", output: { after: false } });
    expect((await bench.view(child)).nodes["all"]).toMatchObject({ status: "CANCELLED", reason: "end" });
  });
});

describe("iteration", () => {
  pattern(21, async () => {
    const poll = (max: number): string => `
      name: poll
      nodes:
        ask: { handler: step, config: { counts: true }, repeat: { until: "ask.n >= 3", every_seconds: 0.01, max: ${max} } }
        after: { handler: step, dependencies: [ask], config: { gives: "{{ ask.n }}" } }
    `;
    const view = await bench.run(poll(9));
    expect(view).toMatchObject({ status: "COMPLETED", output: { after: 3 } });
    expect(view.nodes["ask"]).toMatchObject({ status: "COMPLETED", iteration: 3 });
    bench.log.length = 0;
    const short = await bench.run(poll(2));
    expect(short.nodes["ask"]).toMatchObject({ status: "FAILED", iteration: 2, error: { code: "REPEAT_EXHAUSTED" } });
  });

  pattern(22, async () => {
    const countdown = `
      name: countdown
      nodes:
        here: { handler: step, config: { gives: "{{ input.n }}" } }
        below:
          handler: workflow
          dependencies: [here]
          condition: input.n > 0
          config: { name: countdown, input: { n: "{{ input.n - 1 }}" } }
        out: { handler: output, dependencies: [here, below], config: { n: "{{ here }}", below: "{{ below | default(null) }}" } }
    `;
    await bench.publish(countdown);
    const view = await bench.run(countdown, { n: 2 });
    expect(view.output).toEqual({ n: 2, below: { n: 1, below: { n: 0, below: null } } });
    expect(bench.count("here begins")).toBe(3);
  });
});

describe("termination", () => {
  pattern(11, async () => {
    const id = await bench.start(`
      name: loose ends
      nodes:
        a: { handler: step }
        b: { handler: step, config: { hold: b } }
        c: { handler: step, dependencies: [a], condition: "false" }
    `);
    const view = await bench.shows(id, { a: "COMPLETED", c: "SKIPPED" });
    expect(view.status).toBe("RUNNING");
    bench.let("b");
    expect((await bench.ended(id)).status).toBe("COMPLETED");
  });

  pattern(43, async () => {
    const id = await bench.start(`
      name: stop
      nodes:
        slow: { handler: step, config: { hold: slow } }
        quick: { handler: step }
        end: { handler: end, dependencies: [quick], config: { status: COMPLETED, output: { by: "{{ quick }}" } } }
    `);
    const view = await bench.ended(id);
    expect(view).toMatchObject({ status: "COMPLETED", output: { by: "quick" } });
    expect(shown(view)["slow"]).toBe("CANCELLED end");
  });
});

describe("triggers", () => {
  pattern(23, async () => {
    const id = await bench.start(`
      name: sluice
      nodes:
        fill: { handler: step, config: { hold: fill } }
        open: { handler: review, dependencies: [fill], config: { title: "Open the gate?" } }
        pass: { handler: step, dependencies: [open] }
    `);
    const decision = {
      kind: "decideReview",
      instance: "open",
      generation: 1,
      decision: "approve",
      data: null,
    } as const;
    await bench.begun("fill");
    expect(await bench.ask(id, decision)).toMatchObject({ refused: "REVIEW_CLOSED" });
    bench.let("fill");
    const view = await bench.shows(id, { open: "WAITING" });
    expect(view.nodes["open"]).toMatchObject({ status: "WAITING", reason: "review" });
    await bench.send(id, decision);
    expect((await bench.ended(id)).status).toBe("COMPLETED");
  });

  pattern(24, async () => {
    const id = await bench.start(`
      name: order
      nodes:
        pack: { handler: step, config: { hold: pack } }
        paid: { handler: wait, dependencies: [pack], config: { signal: paid } }
        ship: { handler: step, dependencies: [paid], config: { gives: "{{ paid.amount }}" } }
    `);
    await bench.begun("pack");
    await bench.send(id, { kind: "signal", name: "paid", data: { json: { amount: 5 } } });
    bench.let("pack");
    expect(await bench.ended(id)).toMatchObject({ status: "COMPLETED", output: { ship: 5 } });
  });
});

describe("the table", () => {
  test("has each of the 43 patterns once", () => {
    const numbers = PATTERNS.map(({ number }) => number).toSorted((a, b) => a - b);
    expect(numbers).toEqual(Array.from({ length: 43 }, (_, i) => i + 1));
  });

  test("has a test for each pattern that is supported, and for no other", () => {
    const supported = PATTERNS.filter(({ support }) => support !== "no").map(({ number }) => number);
    expect(tested.toSorted((a, b) => a - b)).toEqual(supported.toSorted((a, b) => a - b));
  });

  test("is what docs/patterns.md says (npx node test/patterns/write.ts writes it)", () => {
    const page = readFileSync(new URL("../../docs/patterns.md", import.meta.url), "utf8");
    expect(page).toBe(patternsPage());
  });
});
