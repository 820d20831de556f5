import { MAX_LABELS, OWN_LABELS, usableLabels } from "../../definition/labels.ts";
import type { Workflow } from "../../definition/workflow.ts";
import type { ListingDraft } from "../machine.ts";
import type { Labels, Start } from "../message.ts";
import type { ExecutionEvent } from "./events.ts";
import type { ExecutionState } from "./state.ts";

/** What the names of these lists begin with. */
export const LABEL_LISTS = "label/";

/** The executions with a label are a list of their own, so that they are found without looking at any other. */
export function labelList(name: string, value: string): string {
  return `${LABEL_LISTS}${name}=${value}`;
}

/**
 * The labels that an execution begins with. What it was told comes before what its definition says, and that before what it
 * has from whoever called it.
 */
export function firstLabels({ labels: defined }: Workflow, { labels, parent }: Start): { readonly labels?: Labels } {
  if (defined === undefined) return labels === undefined ? {} : { labels };
  const own = usableLabels(defined);
  const all = Object.entries(
    parent === undefined ? { ...labels, ...without(own, labels) } : { ...own, ...without(labels, own) },
  );
  return all.length === 0 ? {} : { labels: Object.fromEntries(all.slice(0, MAX_LABELS)) };
}

function without(labels: Labels = {}, others: Labels = {}): Labels {
  return Object.fromEntries(Object.entries(labels).filter(([name]) => !Object.hasOwn(others, name)));
}

/** What an execution hands on to those that it calls. */
export function handedLabels({ labels }: ExecutionState): { readonly labels?: Labels } {
  const handed = Object.entries(labels ?? {}).filter(([name]) => !name.startsWith(OWN_LABELS));
  return handed.length === 0 ? {} : { labels: Object.fromEntries(handed) };
}

/** The lists that it is on for as long as anybody remembers it; undefined if the event does not change them. */
export function lastingLists(id: string, event: ExecutionEvent): readonly ListingDraft[] | undefined {
  if ((event.kind !== "accepted" && event.kind !== "started") || event.labels === undefined) return undefined;
  const { labels } = event;
  const text = JSON.stringify(labels);
  return Object.entries(labels).map(([name, value]) => ({ list: labelList(name, value), id, text }));
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
