import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from "@prometheus-io/client";
import type { Store } from "../../store/contract.ts";
import { serving } from "../service/handler-directory.ts";
import { AnswerCounts } from "./answer-counts.ts";

/** Names that users choose are labels only up to here; all further ones are counted as one. */
const MAX_NAMES = 200;
const SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const LONG_SECONDS = [0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3_600, 14_400, 86_400];

/** How much of a limit is in use. */
export interface LimitUse {
  readonly name: string;
  readonly kind: string;
  readonly in_use: number;
  readonly waiting: number;
  readonly tripped: boolean;
  readonly until: string | null;
}

/** What the worker of a process has. */
export interface WorkerLoad {
  readonly tasks: number;
  readonly slots: number;
  /** By handlers that did not stop when they were asked to. */
  readonly kept: number;
}

/** What a process measures of itself, and what it finds in the store when it is asked. */
export class Metrics {
  readonly #registry = new Registry();
  readonly #queues = new Set<string>();
  readonly #looks: (() => Promise<void>)[] = [];
  readonly #httpRequests = this.#counter("http_requests_total", "Requests answered", ["method", "route", "status"]);
  readonly #httpSeconds = this.#histogram("http_request_seconds", "Time to answer", SECONDS, ["method", "route"]);
  readonly #answers = new AnswerCounts({
    counted: (labels, count) => this.#httpRequests.inc(labels, count),
    took: (labels, seconds) => this.#httpSeconds.observe(labels, seconds),
  });
  readonly streams = this.#gauge("event_streams", "Event streams that are open");
  readonly commits = this.#counter("commits_total", "Batches committed, by what came of them", ["outcome"]);
  readonly commitSeconds = this.#histogram("commit_seconds", "Time of one call to commit", SECONDS);
  readonly events = this.#counter("events_total", "Events committed");
  readonly accepted = this.#counter("executions_accepted_total", "Executions accepted");
  readonly ended = this.#counter("executions_ended_total", "Executions ended, by state", ["status"]);
  readonly executionSeconds = this.#histogram("execution_seconds", "From accepted to ended", LONG_SECONDS, ["status"]);
  readonly dispatched = this.#counter("tasks_dispatched_total", "Deliveries of attempts put into a queue", ["queue"]);
  readonly leased = this.#counter("tasks_leased_total", "Tasks taken by workers", ["queue"]);
  readonly settled = this.#counter("tasks_settled_total", "Tasks reported by workers", ["result", "outcome"]);
  readonly taskSeconds = this.#histogram("task_seconds", "How long handlers ran", LONG_SECONDS, ["result"]);
  readonly retried = this.#counter("tasks_retried_total", "Attempts that failed and are followed by another");
  readonly retrySeconds = this.#histogram("retry_delay_seconds", "From a failed attempt to the next", LONG_SECONDS);
  readonly lapsed = this.#counter("tasks_lapsed_total", "Tasks whose worker was lost");
  readonly removedEarly = this.#counter("executions_removed_early_total", "Ended executions removed to make room");
  readonly deadLetters = this.#counter("dead_letters_total", "Dead letters written", ["class"]);

  /** @param store what is found there is told too; without it only what this process does */
  constructor(store?: Store) {
    collectDefaultMetrics({ register: this.#registry, prefix: "millrace_" });
    if (store !== undefined) this.#watchStore(store);
  }

  #watchStore(store: Store): void {
    const open = this.#gauge("inbox_messages", "Messages that no commit has consumed");
    const out = this.#gauge("tasks_running", "Tasks that workers have");
    const letters = this.#gauge("dead_letters", "Dead letters in the store, those that were dealt with too");
    const executions = this.#gauge(
      "executions_open",
      "Executions that have not ended; only where the store counts them",
    );
    const fill = this.#gauge("store_fill", "How full the store is, of 1; 0 if it has no limit");
    const workers = this.#gauge("queue_workers", "Workers that are alive, by queue", ["queue"]);
    const oldest = this.#gauge("queue_oldest_seconds", "How long the oldest task waits, by queue", ["queue"]);
    const engines = this.#gauge("engines", "Engines that are alive");
    this.#gauge("queue_tasks", "Tasks that wait for a worker, by queue", ["queue"], async (queued) => {
      const [counts, registrations] = await Promise.all([store.queries.counts(), store.records.registered()]);
      queued.reset();
      workers.reset();
      for (const [queue, count] of Object.entries(counts.queued)) queued.inc({ queue: this.name(queue) }, count);
      for (const [queue, served] of serving(registrations)) workers.inc({ queue: this.name(queue) }, served.workers);
      oldest.reset();
      for (const [queue, atMs] of Object.entries(counts.oldestAtMs ?? {})) {
        oldest.set({ queue: this.name(queue) }, Math.max(0, counts.storeTimeMs - atMs) / 1_000);
      }
      engines.set(registrations.filter(({ role }) => role === "engine").length);
      open.set(counts.inbox);
      out.set(counts.leased);
      letters.set(counts.deadLetters);
      if (counts.open === undefined) executions.remove();
      else executions.set(counts.open);
      fill.set(counts.fill ?? 0);
    });
  }

  /** Shows how many partitions the engine of this process owns. */
  watchEngine(held: () => number): void {
    this.#gauge("partitions_held", "Partitions that the engine of this process owns", [], async (gauge) => {
      gauge.set(held());
    });
  }

  /** Shows what the worker of this process has to do. */
  watchWorker(load: () => WorkerLoad): void {
    const slots = this.#gauge("worker_slots", "Tasks that the worker of this process runs at a time");
    const kept = this.#gauge("worker_slots_kept", "Slots of it that are kept by handlers that did not stop when asked");
    this.#gauge("worker_tasks", "Tasks that the worker of this process has", [], async (gauge) => {
      const now = load();
      gauge.set(now.tasks);
      slots.set(now.slots);
      kept.set(now.kept);
    });
  }

  /** Shows how far the archive is behind the store, for the whole fleet. */
  watchArchive(behind: () => Promise<number>): void {
    const up = this.#gauge("archive_up", "1 if the archive answers");
    this.#gauge("archive_behind", "Executions with events that are not in the archive", [], async (gauge) => {
      const count = await behind().catch(() => undefined);
      up.set(count === undefined ? 0 : 1);
      if (count !== undefined) gauge.set(count);
    });
  }

  /** Shows whether all goes well with the bus. Answers what counts its messages. */
  watchBus(isWell: () => boolean): (topic: string, way: string, count: number) => void {
    this.#gauge("bus_up", "1 if everything on the bus can be read, written and carried out", [], async (gauge) => {
      gauge.set(isWell() ? 1 : 0);
    });
    const messages = this.#counter("bus_messages_total", "Messages of the bus, sent by this process or handled by it", [
      "topic",
      "way",
    ]);
    return (topic, way, count) => messages.inc({ topic: this.name(topic), way }, count);
  }

  /** Shows how much of the limits is in use. Those of one name and kind are added up, whatever their keys. */
  watchLimits(limits: () => Promise<readonly LimitUse[]>): void {
    const labels = ["limit", "kind"];
    const waiting = this.#gauge("limit_waiting", "Tasks that wait at a limit", labels);
    const closed = this.#gauge("limit_closed", "1 while a limit lets nothing through", labels);
    this.#gauge("limit_in_use", "What a limit has granted and not got back", labels, async (used) => {
      const found = await limits().catch(() => []);
      for (const gauge of [used, waiting, closed]) gauge.reset();
      for (const { name, kind, in_use: inUse, waiting: count, tripped, until } of found) {
        const limit = { limit: this.name(name), kind };
        used.inc(limit, inUse);
        waiting.inc(limit, count);
        closed.set(limit, tripped || until !== null ? 1 : 0);
      }
    });
  }

  /** Shows whether new work is refused, and why. */
  watchAdmission(closed: () => Promise<{ readonly by: string } | undefined>): void {
    this.#gauge("admission_closed", "1 while new work is refused, by what is too much", ["by"], async (gauge) => {
      const found = await closed().catch(() => undefined);
      gauge.reset();
      for (const by of ["queue_age", "store", "memory"]) gauge.set({ by }, found?.by === by ? 1 : 0);
    });
  }

  /** A label for a name that users choose. */
  name(queue: string): string {
    if (this.#queues.has(queue)) return queue;
    if (this.#queues.size >= MAX_NAMES) return "(other)";
    this.#queues.add(queue);
    return queue;
  }

  /** An answer of a route, after so long. */
  answered(method: string, route: string, status: number, seconds: number): void {
    this.#answers.add(method, route, status, seconds);
  }

  /** An answer to what is for no route. */
  answeredNobody(status: number): void {
    this.#httpRequests.inc({ method: "(any)", route: "(none)", status: String(status) });
  }

  async text(): Promise<string> {
    this.#answers.tellAll();
    // All before any is written down: one look fills several gauges, and those that stand before it would be late by one.
    await Promise.all(this.#looks.map((look) => look()));
    return this.#registry.metrics();
  }

  #counter<Label extends string>(name: string, help: string, labelNames: Label[] = []): Counter<Label> {
    return new Counter({ name: `millrace_${name}`, help, labelNames, registers: [this.#registry] });
  }

  #histogram<Label extends string>(
    name: string,
    help: string,
    buckets: number[],
    labelNames: Label[] = [],
  ): Histogram<Label> {
    return new Histogram({ name: `millrace_${name}`, help, buckets, labelNames, registers: [this.#registry] });
  }

  #gauge<Label extends string>(
    name: string,
    help: string,
    labelNames: Label[] = [],
    collect?: (gauge: Gauge<Label>) => Promise<void>,
  ): Gauge<Label> {
    const gauge = new Gauge({ name: `millrace_${name}`, help, labelNames, registers: [this.#registry] });
    if (collect !== undefined) this.#looks.push(() => collect(gauge));
    return gauge;
  }
}
