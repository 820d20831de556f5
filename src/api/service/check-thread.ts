import { parentPort, workerData } from "node:worker_threads";
import { checkSource, type CheckOrder } from "./check-definition.ts";

/** The program of a thread that checks one large definition, so that the process goes on with everything else. */
parentPort?.postMessage(checkSource(workerData as CheckOrder), []);
