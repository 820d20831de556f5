import type { Probe } from "./probe.ts";
import type { Shape } from "./shapes.ts";

/** Where the servers are that this turn may use; each is empty when the turn begins. */
export interface Servers {
  readonly redis: string;
  readonly postgres: string;
  /** An empty folder on the disk. */
  readonly folder: string;
}

/** Something that runs executions of a shape, in the process of its turn. */
export interface Contender {
  /** Processes besides this one and its children whose work counts, such as the database: a name and its id. */
  readonly servers: Readonly<Record<string, number>>;
  /** Starts executions, as many at once as its documentation says is fastest. */
  submit(count: number): Promise<void>;
  /** One execution, until its result is known to whoever submitted it. */
  runOne(): Promise<void>;
  /** After the last node has run: until the end of all executions is stored. */
  settled(): Promise<void>;
  close(): Promise<void>;
}

/** How a contender is begun, and what is said of it. */
export interface Entry {
  readonly name: string;
  readonly label: string;
  readonly kind: "millrace" | "peer" | "limit";
  /** What is lost when the machine loses power. */
  readonly durability: string;
  /** How it is set up, for people. */
  readonly settings: string;
  /** Whether the whole graph is handed over at once, instead of steps that start the next ones. */
  readonly declared: boolean;
  readonly runs: (shape: Shape) => boolean;
  /** Steps handed over in one call of `submit`, and how many may be under way. */
  readonly chunkSteps: number;
  readonly windowSteps: number;
  /** How it is asked how soon it is: not at all, or seldom where every step waits for a clock to tick. */
  readonly latency: "measured" | "seldom" | "none";
  /** The bare limit that it is held against. */
  readonly limit?: string;
  readonly start: (probe: Probe, servers: Servers) => Promise<Contender>;
}
