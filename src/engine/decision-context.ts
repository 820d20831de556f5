import type { Context } from "../core/machine.ts";
import type { Host } from "../host/host.ts";
import type { Json } from "../json/json.ts";
import type { Resident } from "./resident.ts";
import type { TaskWindow } from "./task-window.ts";

/**
 * What the decisions of a batch may know. One for all entities of a partition, pointed at whoever decides next: a decision
 * is over before the next begins, and there are several for each step.
 */
export class DecisionContext implements Context {
  nowMs = 0;
  deadlineMs = 0;
  calendarMs = 0;
  readonly nonce: string;
  readonly maxEvents: number;
  resident: Resident | null = null;
  private readonly host: Host;
  private readonly window: TaskWindow;

  constructor(host: Host, window: TaskWindow, nonce: string, maxEvents: number) {
    this.host = host;
    this.window = window;
    this.nonce = nonce;
    this.maxEvents = maxEvents;
  }

  random(): number {
    return this.host.random();
  }

  room(queue: string): number {
    return this.window.room(queue);
  }

  fetched(key: string): Json | undefined {
    return this.resident!.fetched.get(key);
  }
}
