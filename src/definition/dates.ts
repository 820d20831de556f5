const DAY = String.raw`(\d{4}-\d{2}-\d{2})`;
const TIME = String.raw`\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?`;
const DATE = new RegExp(`^${DAY}(?:[T ]${TIME}(?:Z|[+-]\\d{2}:\\d{2})?)?$`);
const WITHOUT_ZONE = new RegExp(`^${DAY}[T ](${TIME})$`);

/**
 * A date of ISO 8601, with a time or without. JavaScript takes many other texts for dates: "5" is in May 2001, and the
 * 30th of February is in March.
 */
export function isDate(text: string): boolean {
  const day = DATE.exec(text)?.[1];
  return day !== undefined && !Number.isNaN(Date.parse(text)) && new Date(day).toISOString().startsWith(day);
}

/** A time without a zone is in UTC, and not in whatever zone the engine's machine is. */
export function withZone(text: string): string {
  return text.replace(WITHOUT_ZONE, "$1T$2Z");
}
