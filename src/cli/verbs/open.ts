import { spawn } from "node:child_process";
import type { Verb } from "../call.ts";
import { EXIT } from "../exit-code.ts";
import { printJson } from "../print.ts";
import { connect, segment } from "../server.ts";

/** By platform, the program that shows an address; anywhere else it is only printed. */
const OPENERS: Readonly<Record<string, readonly string[]>> = {
  darwin: ["open"],
  win32: ["cmd", "/c", "start", ""],
  linux: ["xdg-open"],
};

/** The page of the server, or of one execution, in a browser. Where there is none, the address will do. */
export const verb: Verb = async (call) => {
  const server = await connect(call);
  const [name] = call.args;
  const page =
    name === undefined ? "/" : `/runs/${segment((await server.execution(await server.idOf(name))).execution_id)}`;
  const url = `${server.url}${page}`;
  if (call.json) printJson(call, { url });
  else call.terminal.out(`${url}\n`);
  const [program, ...args] = OPENERS[process.platform] ?? [];
  if (program !== undefined && call.terminal.isInteractive) {
    const opened = spawn(program, [...args, url], { stdio: "ignore", detached: true });
    // Not there: the address was printed.
    opened.on("error", () => undefined);
    opened.unref();
  }
  return EXIT.done;
};
