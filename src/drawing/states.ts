/** How a state is shown: never by colour alone. */
export interface ShownState {
  readonly symbol: string;
  readonly word: string;
}

const STATES: Readonly<Record<string, ShownState>> = {
  PENDING: { symbol: "·", word: "pending" },
  QUEUED: { symbol: "○", word: "queued" },
  RUNNING: { symbol: "▶", word: "running" },
  WAITING: { symbol: "◔", word: "waiting" },
  PAUSED: { symbol: "‖", word: "paused" },
  COMPLETED: { symbol: "✓", word: "completed" },
  PARTIAL: { symbol: "◐", word: "partial" },
  FAILED: { symbol: "✗", word: "failed" },
  SKIPPED: { symbol: "–", word: "skipped" },
  CANCELLED: { symbol: "⊘", word: "cancelled" },
};

/** Upper-case as in the API; one that is not known is shown as it is. */
export function shownState(status: string): ShownState {
  return STATES[status] ?? { symbol: "?", word: status.toLowerCase() };
}

export function isOver(status: string): boolean {
  return status === "COMPLETED" || status === "PARTIAL" || status === "FAILED" || status === "CANCELLED";
}

/** How long something took, short enough for a column. */
export function shownDuration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 1_440) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  const hours = Math.round(minutes / 60);
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}
