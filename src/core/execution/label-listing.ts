import type { ListingDraft } from "../machine.ts";
import type { Labels } from "../message.ts";
import type { ExecutionState } from "./state.ts";

/** The executions with a label are a list of their own, so that they are found without looking at any other. */
export function labelList(name: string, value: string): string {
  return `label/${name}=${value}`;
}

/** It comes on the list of each of its labels, and off those whose value it had before. All of them are told in each. */
export function labelListings(state: ExecutionState, labels: Labels): ListingDraft[] {
  const text = JSON.stringify(labels);
  return Object.entries(labels).flatMap(([name, value]) => {
    const before = state.labels?.[name];
    const on = { list: labelList(name, value), id: state.id, text };
    return before === undefined || before === value ? [on] : [{ ...on, list: labelList(name, before), text: null }, on];
  });
}
