import type { Host } from "./host.ts";

/** A UUIDv7: newer ones sort behind older ones, and each tells when it was drawn. */
export function timeId(host: Pick<Host, "wallMs" | "id">): string {
  const time = Math.max(0, Math.floor(host.wallMs())).toString(16).padStart(12, "0").slice(-12);
  const random = host.id() + host.id();
  const variant = (8 + (Number.parseInt(random[3]!, 16) & 3)).toString(16);
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(0, 3)}-${variant}${random.slice(4, 7)}-${random.slice(7, 19)}`;
}

const TIME_ID = /^([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i;

/** When it was drawn, by the clock of whoever drew it; undefined if it does not tell. */
export function drawnAtMs(id: string): number | undefined {
  const [, high, low] = TIME_ID.exec(id) ?? [];
  return high === undefined ? undefined : Number.parseInt(high + low!, 16);
}
