import { spawn } from "node:child_process";
import { type Handler, HandlerError } from "../../src/worker/handler.ts";

/** A handler that runs in a process of its own, and does there what its config says. */

let calls = 0;

const handler: Handler = async (call) => {
  const { does, text } = call.config as { readonly does: string; readonly text: string };
  calls++;
  switch (does) {
    case "say who it is":
      return { pid: process.pid, calls };
    case "say what it was given": {
      const { config, inputs = null, idempotencyKey, attempt } = call;
      return { config, inputs, idempotencyKey, attempt, env: process.env["MILLRACE_SECRET_CANARY"] ?? null };
    }
    case "report":
      call.addUsage({ tokens: 3 });
      call.closeLimit(7_000);
      call.conceal("hidden-0815");
      call.log("working with hidden-0815", { n: 1 });
      // oxlint-disable-next-line no-console -- must not get into the worker's own output
      console.log("printed");
      return "hidden-0815";
    case "conceal nothing":
      call.conceal(process.env["NOBODY_HAS_SET_THIS"] as string);
      return new Promise(() => {});
    case "send what it likes":
      process.send!(null);
      process.send!("text");
      return "went on";
    case "throw":
      throw new HandlerError("BUSY", `no: ${text}`, { retryable: true, retryAfterMs: 5, details: { n: 1 } });
    case "throw much":
      throw new Error(`${"x".repeat(15_990)}${text}`);
    case "return a circle": {
      const circle: { self?: unknown } = {};
      circle.self = circle;
      return circle as never;
    }
    case "return much":
      return "x".repeat(50_000_000);
    case "exit":
      return process.exit(3);
    case "run out of memory": {
      const kept: unknown[] = [];
      for (;;) kept.push(Array.from({ length: 100_000 }, (_, i) => ({ i })));
    }
    case "fail later": {
      setTimeout(() => {
        throw new Error("nobody catches this");
      }, 1);
      return new Promise(() => {});
    }
    case "return, and fail later":
      setTimeout(() => {
        throw new Error("nobody catches this");
      }, 20);
      return { pid: process.pid };
    case "return, and say more later":
      setTimeout(() => {
        call.log("of another call");
        call.addUsage({ tokens: 1 });
      }, 50);
      return { pid: process.pid };
    case "stop when asked":
      if (!call.signal.aborted) await new Promise((resolve) => call.signal.addEventListener("abort", resolve));
      return "stopped";
    case "compute for ever":
      for (;;) calls++;
    case "leave a child and compute for ever": {
      const { pid } = spawn("sleep", ["600"], { stdio: "ignore" });
      call.log(`child ${pid}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
      for (;;) calls++;
    }
    default:
      return null;
  }
};

export default handler;
