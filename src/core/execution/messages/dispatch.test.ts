import { expect, test } from "vitest";
import { parseToken } from "../../token.ts";
import { newestToken } from "../decision.ts";
import { node, RETRYABLE, Trial, workflow } from "../test-execution.ts";
import { randomBeginning } from "../test-histories.ts";
import { claim } from "./dispatch.ts";

test("what is out is current under its own token and no other", () => {
  let out = 0;
  let firstTries = 0;
  let later = 0;
  for (let seed = 1; seed <= 150; seed++) {
    const { state } = randomBeginning(seed);
    if (state.isEnded) continue;
    for (const unit of state.live) {
      const text = newestToken(state, state.nameOf(unit));
      const token = parseToken(text)!;
      out++;
      if (token.generation === 1 && token.attempt === 1 && token.delivery === 1) firstTries++;
      expect(claim(state, text)).toEqual({ kind: "current", unit, run: state.runs[unit], token, newest: true });
      const others = [`x${text}`, `${text}1`, text.replace(token.nonce, "another"), text.replace(state.id, "other")];
      for (const other of others) expect(claim(state, other).kind).toBe("unknown");
      expect(claim(state, `x${text.slice(1)}`).kind).toBe("unknown");
      expect(claim(state, text.replace(state.id, "z".repeat(state.id.length))).kind).toBe("unknown");
      // That of the first try of its node, which is another one's where it is an item, a later round or of a later generation.
      const first = `${token.nonce}:${state.id}${state.planOf(unit).firstTry}`;
      if (first === text) continue;
      later++;
      expect(claim(state, first)).not.toMatchObject({ kind: "current", newest: true });
    }
  }
  expect(firstTries).toBeGreaterThan(20);
  expect(out).toBeGreaterThan(firstTries);
  expect(later).toBeGreaterThan(5);
});

test("where many are out each has its own token as well", () => {
  const names = Array.from({ length: 12 }, (_, i) => `n${i}`);
  const trial = new Trial({ ...workflow(names.map((name) => node(name))), max_parallel_nodes: null }).begin();
  for (const [unit, name] of names.entries()) {
    expect(claim(trial.state, trial.token(name))).toMatchObject({ kind: "current", unit });
  }
});

test("the first try is stale once there is another", () => {
  const trial = new Trial(workflow([node("a")])).begin();
  const token = trial.token("a");
  trial.fails("a", RETRYABLE).at(100_000).settle();
  expect(claim(trial.state, token).kind).toBe("stale");
});

test("the first try of an execution that is over is late", () => {
  const trial = new Trial(workflow([node("a"), node("b")])).begin();
  const token = trial.token("a");
  trial.send({ kind: "cancel", request: "c" });
  expect(claim(trial.state, token).kind).toBe("late");
});
