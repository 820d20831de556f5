import type { Host } from "../../host/host.ts";

/** A part that may not be ready: undefined if it is, else why not. */
export type ReadyCheck = () => Promise<string | undefined> | string | undefined;
export type ReadyChecks = Readonly<Record<string, ReadyCheck>>;

export interface Readiness {
  readonly ready: boolean;
  /** By part: "ok", or what is wrong with it. */
  readonly parts: Readonly<Record<string, string>>;
}

const ANSWER_MS = 2_000;

/** What is in the way of serving, and behind that what is in trouble without being in the way. */
export async function readinessOf(checks: ReadyChecks, notes: ReadyChecks): Promise<Readiness> {
  const parts: Record<string, string> = {};
  for (const [name, check] of Object.entries(checks)) parts[name] = (await check()) ?? "ok";
  const ready = Object.values(parts).every((state) => state === "ok");
  // With a store that does not answer, nobody knows more than that.
  if ((parts["store"] ?? "ok") !== "ok") return { ready, parts };
  for (const [name, note] of Object.entries(notes)) parts[name] = (await note()) ?? "ok";
  return { ready, parts };
}

/** A check of something that has to answer in time. */
export function answers(host: Host, ask: () => Promise<unknown>): ReadyCheck {
  return async () => {
    const answered = new AbortController();
    const silence = host.sleep(ANSWER_MS, answered.signal).then(() => "does not answer");
    try {
      return await Promise.race([ask().then(() => undefined), silence]);
    } catch {
      return "does not answer";
    } finally {
      answered.abort("answered");
    }
  };
}
