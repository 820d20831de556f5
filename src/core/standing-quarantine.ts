import type { MachineEvent } from "./machine.ts";
import type { ErrorValue, Message } from "./message.ts";

/** What an entity is in quarantine for, and what has come for it meanwhile. */
export interface StandingQuarantine {
  readonly error: ErrorValue;
  readonly parked: Message[];
}

/** Events that the shell writes itself, for any kind of entity: `quarantined`, `parked`, `released`. */
type ShellEvent = MachineEvent & { readonly error: ErrorValue; readonly message: Message };

/** The quarantine an entity is under, told from its raw events: folding them may be just what must not happen. */
export function standingQuarantine(records: readonly { readonly text: string }[]): StandingQuarantine | undefined {
  let standing: StandingQuarantine | undefined;
  for (const { text } of records) {
    if (standing === undefined && !text.includes('"quarantined"')) continue;
    for (const event of JSON.parse(text) as ShellEvent[]) {
      if (event.kind === "quarantined") standing = { error: event.error, parked: [] };
      if (event.kind === "parked") standing?.parked.push(event.message);
      if (event.kind === "released") standing = undefined;
    }
  }
  return standing;
}
