import { type Message, messageOfTask, messageText, type TaskCompleted, taskMessage } from "../core/message.ts";
import type { Value } from "../core/value.ts";
import type { Json } from "../json/json.ts";
import type { LeasedTask, Settlement } from "../store/contract.ts";
import type { Delivery } from "./delivery.ts";
import type { Outcome } from "./task-caller.ts";

/** About how long a message is besides an output that is worth counting. */
const MESSAGE_CHARS = 1_500;

/** Waits in an inbox until it is read: a class, for the reason that `Resident` has. */
class CompletedBody implements TaskCompleted {
  readonly kind = "taskCompleted";
  readonly token: string;
  readonly output: Value;
  readonly runningMs: number;
  declare usage?: Json;
  declare closeForMs?: number;

  constructor(token: string, output: Value, runningMs: number) {
    this.token = token;
    this.output = output;
    this.runningMs = runningMs;
  }
}

/** Of a result that nobody has written down. */
class SettlementInHand implements Settlement {
  readonly ref: string;
  readonly token: string;
  readonly partition: number;
  readonly outcome = "completed";
  readonly text = "";
  readonly message: Message;
  readonly messageChars: number;

  constructor({ ref, token, partition }: LeasedTask, message: Message, messageChars: number) {
    this.ref = ref;
    this.token = token;
    this.partition = partition;
    this.message = message;
    this.messageChars = messageChars;
  }
}

/** What a worker says of a task that has run. Where it stays in the process nothing is written down. */
export function settlementOf(
  { leased, usage, closeForMs }: Delivery,
  outcome: Outcome,
  runningMs: number,
  worker: string,
  sameProcess: boolean,
): Settlement {
  const { ref, token, partition } = leased;
  const used = usage.total();
  if ("error" in outcome) {
    const more = { runningMs, ...(used !== undefined && { usage: used }), ...(closeForMs > 0 && { closeForMs }) };
    const body = { kind: "taskFailed" as const, token, ...outcome, ...more };
    return { ref, token, partition, outcome: "failed", text: taskMessage(leased, worker, body) };
  }
  const { output } = outcome;
  const body = new CompletedBody(token, output, runningMs);
  if (used !== undefined) body.usage = used;
  if (closeForMs > 0) body.closeForMs = closeForMs;
  const message = messageOfTask(leased, worker, body);
  if (!sameProcess) return { ref, token, partition, outcome: "completed", text: messageText(message) };
  const messageChars = MESSAGE_CHARS + (("json" in output ? output.bytes : undefined) ?? 0);
  return new SettlementInHand(leased, message, messageChars);
}
