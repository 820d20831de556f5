import type { Host } from "./host.ts";

/** A clock that was set back by more than this is believed; by less, ids go on from where they were. */
const BELIEVED_MS = 10_000;
const MOST_OF_A_MS = 0xfff;

interface Drawn {
  ms: number;
  place: number;
  /** Its milliseconds as an id has them: several are drawn in each. */
  time: string;
}

/** What was drawn last, by each host: two worlds in one process have nothing to do with each other. */
const last = new WeakMap<object, Drawn>();

/**
 * A UUIDv7: newer ones sort behind older ones, those of one process also within a millisecond, and each tells when it was
 * drawn.
 */
export function timeId(host: Pick<Host, "wallMs" | "id">): string {
  let drawn = last.get(host);
  if (drawn === undefined) last.set(host, (drawn = { ms: -1, place: 0, time: "" }));
  const nowMs = Math.max(0, Math.floor(host.wallMs()));
  if (nowMs > drawn.ms || nowMs < drawn.ms - BELIEVED_MS) {
    // The upper half is left for those that follow.
    begin(drawn, nowMs, Number.parseInt(host.id().slice(0, 3), 16) >> 1);
  } else if (++drawn.place > MOST_OF_A_MS) {
    begin(drawn, drawn.ms + 1, 0);
  }
  const random = host.id();
  const place = drawn.place.toString(16).padStart(3, "0");
  const variant = VARIANTS[Number.parseInt(random[0]!, 16) & 3]!;
  return `${drawn.time}-7${place}-${variant}${random.slice(1, 4)}-${random.slice(4, 16)}`;
}

const VARIANTS = "89ab";

function begin(drawn: Drawn, ms: number, place: number): void {
  const time = ms.toString(16).padStart(12, "0").slice(-12);
  drawn.ms = ms;
  drawn.place = place;
  drawn.time = `${time.slice(0, 8)}-${time.slice(8)}`;
}

const TIME_ID = /^([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i;

/** When it was drawn, by the clock of whoever drew it; undefined if it does not tell. */
export function drawnAtMs(id: string): number | undefined {
  const [, high, low] = TIME_ID.exec(id) ?? [];
  return high === undefined ? undefined : Number.parseInt(high + low!, 16);
}
