import { embedded } from "../../../src/sdk/index.ts";
import { slowSum } from "./slow-sum.ts";

/** Starts runs until somebody kills it, and says of each that it was accepted. */
const engine = await embedded({ dataDir: process.argv[2]!, concurrency: 8 });
for (let n = 0; ; n++) {
  const { id } = await engine.start(slowSum, { n: n % 5 });
  process.stdout.write(`${id} ${n % 5}\n`);
}
