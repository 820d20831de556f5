import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { CONFIG_FILES } from "./config-file.ts";
import { GROUPS, type SettingName, SETTINGS, WITHOUT_EFFECT } from "./declarations.ts";
import type { Setting } from "./setting.ts";

/** docs/settings.md, from the declarations. */
export function settingsPage(): string {
  const names = Object.keys(SETTINGS) as SettingName[];
  const starts = GROUPS.map(([first]) => names.indexOf(first));
  const groups = GROUPS.map(([, title], i) => {
    const rows = names
      .slice(starts[i], starts[i + 1])
      .map(row)
      .join("\n");
    return `## ${title}\n\n| Variable | Flag | In a config file | May be | Default | What it does |\n|---|---|---|---|---|---|\n${rows}`;
  });
  const ignored = Object.entries(WITHOUT_EFFECT).map(([name, reason]) => `| \`${name}\` | ${reason} |`);
  return `# Settings

Written by \`npm run docs\` from \`src/settings/declarations.ts\`. A flag comes before the environment, the environment before
the config file, that before the default. All wrong values are told at once, and nothing starts with any; of those
of OpenTelemetry there is only a warning.

The config file is the one that \`--config\` or \`MILLRACE_CONFIG\` names, else the first of these in the working directory:
${CONFIG_FILES.map((name) => `\`${name}\``).join(", ")}. A \`.env\` file there is read too; the environment comes before it.
Secrets have no flags; each may be given as a file instead, for instance \`OPENAI_API_KEY_FILE\`. The values of
\`{{ secrets.NAME }}\` come from \`MILLRACE_SECRET_NAME\` of the process with the worker; for workers over HTTP, which have no
access to the store, from that of the server they lease from: it fills them in. \`MILLRACE_CONTEXTS\` is the file that \`millrace context\` keeps servers and
their keys in, by default \`millrace/contexts.json\` in \`XDG_CONFIG_HOME\` or \`~/.config\`.

${groups.join("\n\n")}

## Accepted, without effect

An environment that comes from elsewhere may have these; each is answered by a warning.

| Variable | Why it has no effect |
|---|---|
${ignored.join("\n")}
`;
}

function row(name: SettingName): string {
  const setting: Setting = SETTINGS[name];
  const { env, flag, shape, doc, isByHandler } = setting;
  const variables = env.map((variable) => `\`${variable}${isByHandler ? "<HANDLER>" : ""}\``).join(", ");
  const shownFlag = flag === undefined ? "" : `\`--${flag}\``;
  return `| ${variables} | ${shownFlag} | \`${name}\` | ${shape.replaceAll("|", "\\|")} | ${shown(setting.default)} | ${doc} |`;
}

function shown(value: unknown): string {
  if (value === undefined || (typeof value === "object" && Object.keys(value as object).length === 0)) return "";
  if (Array.isArray(value)) return `\`${value.join(",")}\``;
  return `\`${typeof value === "string" ? value : JSON.stringify(value)}\``;
}

if (process.argv[1] === import.meta.filename) {
  writeFileSync(join(import.meta.dirname, "..", "..", "docs", "settings.md"), settingsPage());
}
