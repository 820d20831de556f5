import { nodeHost } from "../host/node-host.ts";

/** Lets a wait end as a `timeout` after so long, however long that is. Gives back what calls it off. */
export function abortAfter(leaving: AbortController, timeoutMs: number | undefined): () => void {
  if (timeoutMs === undefined) return () => undefined;
  const calledOff = new AbortController();
  const wait = async (): Promise<void> => {
    // A timer alone holds no more than 24.8 days, and takes anything longer for "at once".
    await nodeHost.sleep(timeoutMs, calledOff.signal);
    if (!calledOff.signal.aborted) leaving.abort("timeout");
  };
  void wait();
  return () => calledOff.abort();
}
