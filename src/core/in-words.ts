const UNITS = [
  ["d", 86_400],
  ["h", 3_600],
  ["min", 60],
  ["s", 1],
] as const;

/** A duration as people say it, in its two largest units: `12 s`, `4 min`, `1 d 3 h`. */
export function inWords(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  const first = UNITS.findIndex(([, size]) => seconds >= size);
  if (first < 0) return "0 s";
  const [unit, size] = UNITS[first]!;
  const whole = `${Math.floor(seconds / size)} ${unit}`;
  const [smaller, smallerSize] = UNITS[first + 1] ?? ["", Infinity];
  const rest = Math.floor((seconds % size) / smallerSize);
  return rest === 0 ? whole : `${whole} ${rest} ${smaller}`;
}

/** A moment as people say it: of the last day by its time alone. */
export function momentInWords(atMs: number, nowMs: number): string {
  const text = new Date(atMs).toISOString();
  const time = `${text.slice(11, 16)} UTC`;
  return Math.abs(nowMs - atMs) < 86_400_000 ? time : `${text.slice(0, 10)} ${time}`;
}
