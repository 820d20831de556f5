import type { Handler } from "../../../src/worker/handler.ts";

const double: Handler = ({ config }) => ({ twice: (config as { readonly n: number }).n * 2, pid: process.pid });

export default double;
