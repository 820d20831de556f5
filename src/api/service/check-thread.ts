import { parentPort, workerData } from "node:worker_threads";
import { checkSource, type CheckOrder } from "./check-definition.ts";

/**
 * The program of a thread that checks one large definition, so that the process goes on with everything else. The text goes over as bytes,
 * which are handed on and not copied, and take no room in the heap of whoever gets them.
 */
const checked = checkSource(workerData as CheckOrder);
const { good } = checked;
if (good === undefined) {
  parentPort?.postMessage(checked, []);
} else {
  const text = new TextEncoder().encode(good.text as string);
  parentPort?.postMessage({ ...checked, good: { ...good, text } }, [text.buffer]);
}
