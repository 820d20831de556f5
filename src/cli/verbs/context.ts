import type { Verb } from "../call.ts";
import { contextNamed, type Contexts, LOCAL, readContexts, writeContexts } from "../contexts.ts";
import { EXIT } from "../exit-code.ts";
import { Failure } from "../failure.ts";
import { printJson, printTable } from "../print.ts";

/** Servers by name, so that nobody has to repeat addresses. */
export const verb: Verb = async (call) => {
  const { env } = call.terminal;
  const all = readContexts(env);
  const [name = ""] = call.args;
  const save = (contexts: Contexts, told: string): void => {
    writeContexts(env, contexts);
    if (call.json) printJson(call, { current: contexts.current });
    else call.terminal.out(`${told}\n`);
  };
  switch (call.command) {
    case "context add": {
      if (name === LOCAL || !/^[\w.-]{1,64}$/.test(name)) {
        throw new Failure(EXIT.usage, `a context must be called by letters, digits, "." or "-", and not "${LOCAL}".`);
      }
      const { settings } = await call.settings();
      const { url, apiKey } = settings;
      const added = { url, ...(apiKey !== undefined && { apiKey }) };
      const key = apiKey === undefined ? "without a key" : "with the key of MILLRACE_API_KEY";
      save({ ...all, contexts: { ...all.contexts, [name]: added } }, `${name} is ${url}, ${key}`);
      break;
    }
    case "context use":
      if (name !== LOCAL) contextNamed(all, name);
      save({ ...all, current: name }, `commands go to ${name}`);
      break;
    case "context rm": {
      contextNamed(all, name);
      const { [name]: _, ...contexts } = all.contexts;
      save({ current: all.current === name ? LOCAL : all.current, contexts }, `${name} removed`);
      break;
    }
    default: {
      const known = [[LOCAL, { url: "http://127.0.0.1:4747" }] as const, ...Object.entries(all.contexts)];
      const items = known.map(([one, { url }]) => ({ name: one, url, current: one === all.current }));
      if (call.json) printJson(call, { items, next_cursor: null });
      else {
        const rows = items.map((item) => [item.current ? "*" : "", item.name, item.url]);
        printTable(call, ["", "CONTEXT", "URL"], rows);
      }
    }
  }
  return EXIT.done;
};
