import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { COMMANDS } from "./commands.ts";
import { EXIT } from "./exit-code.ts";
import { commandHelp } from "./help.ts";

const MEANINGS: Readonly<Record<keyof typeof EXIT, string>> = {
  done: "done; for `run`, `watch` and `result`: the execution completed",
  failed: "the execution failed; of `test`: something came out otherwise; of `doctor`: something is wrong",
  usage: "the command line, a setting or the config file cannot be understood",
  invalid: "a definition or an input is invalid",
  notFound: "there is no such file, execution, workflow, review or dead letter",
  notAllowed: "a key is missing or may not, or the state of the execution does not allow it",
  unreachable: "the server or the store cannot be reached, or cannot serve now",
  cancelled: "the execution was cancelled",
  waitingForPerson: "a person has to decide (`--no-wait-approval`)",
  partial: "the execution ended PARTIAL: something failed, something completed",
  timeout: "`--timeout` has passed; on a server the execution goes on, one that runs here ends with the command",
  interrupted: "interrupted; the message says whether the execution goes on",
};

/** docs/cli.md, from the table of commands. */
export function commandsPage(): string {
  const codes = (Object.keys(EXIT) as (keyof typeof EXIT)[]).map((name) => `| ${EXIT[name]} | ${MEANINGS[name]} |`);
  const commands = COMMANDS.map(
    (spec) => `### millrace ${spec.name}\n\n\`\`\`text\n${commandHelp(spec).trimEnd()}\n\`\`\``,
  );
  return `# Commands

Written by \`npm run docs\` from \`src/cli/commands.ts\`. stdout holds data only, everything else is on stderr; \`--json\` works
everywhere. Commands that talk to a server find it by \`--url\` or \`MILLRACE_URL\`, send \`MILLRACE_API_KEY\` if it is set, and
always send an Idempotency-Key, so that a request repeated over a broken line counts once. The same command given twice starts
twice, unless both have the same \`--key\`; only \`batch run\` goes on where it was. \`@latest\` and \`@failed\` name the newest such execution that somebody has started;
where a review is meant, \`@latest\` names the one that was opened last.

## Exit codes

| Exit | Meaning |
|---|---|
${codes.join("\n")}

## Commands

${commands.join("\n\n")}
`;
}

if (process.argv[1] === import.meta.filename) {
  writeFileSync(join(import.meta.dirname, "..", "..", "docs", "cli.md"), commandsPage());
}
