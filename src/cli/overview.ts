import { COMMANDS, type CommandSpec, GROUP_TITLES, type Group } from "./commands.ts";

/** What `millrace --help` prints. */
export function overview(): string {
  const width = Math.max(...COMMANDS.map((spec) => heading(spec).length)) + 2;
  const groups = (Object.keys(GROUP_TITLES) as Group[]).map((group) => {
    const lines = COMMANDS.filter((spec) => spec.group === group).map(
      (spec) => `  ${heading(spec).padEnd(width)}${spec.summary}`,
    );
    return `${GROUP_TITLES[group]}\n${lines.join("\n")}`;
  });
  return `millrace: workflows as graphs that survive the death of any process

Usage: millrace <command> [options]

${groups.join("\n\n")}

millrace <command> --help tells more. Every command takes --json. Settings: docs/settings.md.
`;
}

function heading({ name, args }: CommandSpec): string {
  return [name, ...args].join(" ");
}
