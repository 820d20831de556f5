import type { Host } from "./host.ts";

/** A clock that was set back by more than this is believed; by less, ids go on from where they were. */
const BELIEVED_MS = 10_000;
const MOST_OF_A_MS = 0xfff;

/** What was drawn last, by each host: two worlds in one process have nothing to do with each other. */
const last = new WeakMap<object, { ms: number; place: number }>();

/**
 * A UUIDv7: newer ones sort behind older ones, those of one process also within a millisecond, and each tells when it was
 * drawn.
 */
export function timeId(host: Pick<Host, "wallMs" | "id">): string {
  let drawn = last.get(host);
  if (drawn === undefined) last.set(host, (drawn = { ms: -1, place: 0 }));
  const random = host.id() + host.id();
  const nowMs = Math.max(0, Math.floor(host.wallMs()));
  if (nowMs > drawn.ms || nowMs < drawn.ms - BELIEVED_MS) {
    drawn.ms = nowMs;
    // The upper half is left for those that follow.
    drawn.place = Number.parseInt(random.slice(0, 3), 16) >> 1;
  } else if (++drawn.place > MOST_OF_A_MS) {
    drawn.ms++;
    drawn.place = 0;
  }
  const time = drawn.ms.toString(16).padStart(12, "0").slice(-12);
  const place = drawn.place.toString(16).padStart(3, "0");
  const variant = (8 + (Number.parseInt(random[3]!, 16) & 3)).toString(16);
  return `${time.slice(0, 8)}-${time.slice(8)}-7${place}-${variant}${random.slice(4, 7)}-${random.slice(7, 19)}`;
}

const TIME_ID = /^([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i;

/** When it was drawn, by the clock of whoever drew it; undefined if it does not tell. */
export function drawnAtMs(id: string): number | undefined {
  const [, high, low] = TIME_ID.exec(id) ?? [];
  return high === undefined ? undefined : Number.parseInt(high + low!, 16);
}
