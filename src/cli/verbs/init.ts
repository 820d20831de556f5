import { existsSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { makeFolders } from "../../host/make-folders.ts";
import { hasSwitch, option, type Verb } from "../call.ts";
import { EXIT } from "../exit-code.ts";
import { Failure } from "../failure.ts";
import { shellWord } from "../failure-text.ts";
import { printJson } from "../print.ts";
import { TEMPLATES } from "../project/templates.ts";
import { version } from "../version.ts";

/** Writes a project that runs as it is: `millrace dev` needs nothing to be installed. */
export const verb: Verb = async (call) => {
  const { terminal } = call;
  const [given = "."] = call.args;
  const name = option(call, "template") ?? "typescript";
  const template = Object.hasOwn(TEMPLATES, name) ? TEMPLATES[name] : undefined;
  if (template === undefined) {
    const names = Object.keys(TEMPLATES).join(" or ");
    throw new Failure(EXIT.usage, `there is no template ${JSON.stringify(name)}.`, { hint: `--template ${names}` });
  }
  const folder = resolve(terminal.directory, given);
  const files = Object.entries(template(packageName(folder), version()));
  const there = files.map(([file]) => file).filter((file) => existsSync(join(folder, file)));
  if (there.length > 0 && !hasSwitch(call, "force")) {
    throw new Failure(EXIT.notAllowed, `${given} has ${there.join(", ")} already.`, {
      hint: "name another folder, or write over them with --force",
    });
  }
  try {
    makeFolders(folder);
    for (const [file, text] of files) writeFileSync(join(folder, file), text);
  } catch (error) {
    throw new Failure(EXIT.unreachable, `${given} cannot be written: ${(error as Error).message}`);
  }
  const written = files.map(([file]) => file);
  if (call.json) printJson(call, { folder: given, files: written });
  else {
    const enter = given === "." ? "" : `cd ${shellWord(given)} && `;
    terminal.out(`wrote ${written.map((file) => join(given, file)).join(", ")}\n\nrun it:  ${enter}millrace dev\n`);
  }
  return EXIT.done;
};

/** What npm takes for a name. */
function packageName(folder: string): string {
  const name = basename(folder)
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, "-")
    .replace(/^[._-]+/, "");
  return name === "" ? "workflows" : name;
}
