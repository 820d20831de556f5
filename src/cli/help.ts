import { type SettingName, SETTINGS } from "../settings/declarations.ts";
import type { Setting } from "../settings/setting.ts";
import { COMMON_OPTIONS, type CommandSpec, type OptionSpec } from "./commands.ts";

/** What `millrace <command> --help` prints. */
export function commandHelp(spec: CommandSpec): string {
  const also = spec.also.length === 0 ? "" : `\nAlso: ${spec.also.map((name) => `millrace ${name}`).join(", ")}\n`;
  const own = spec.options.map(optionLine);
  const settings = spec.settings.map(settingLine);
  const common = COMMON_OPTIONS.map(optionLine);
  const width = Math.max(...[...own, ...settings, ...common].map(([left]) => left.length)) + 2;
  const section = (title: string, lines: readonly (readonly [string, string])[]): string =>
    lines.length === 0
      ? ""
      : `\n${title}\n${lines.map(([left, right]) => `  ${left.padEnd(width)}${right}`).join("\n")}\n`;
  return `${spec.summary}

Usage: millrace ${[spec.name, ...spec.args].join(" ")} [options]
${also}${section("Options", own)}${section("Settings (flag, or variable)", settings)}${section("Always", common)}`;
}

function optionLine({ name, short, value, doc }: OptionSpec): readonly [string, string] {
  const letter = short === undefined ? "" : `-${short}, `;
  return [`${letter}--${name}${value === undefined ? "" : ` ${value}`}`, doc];
}

function settingLine(name: SettingName): readonly [string, string] {
  const { flag, env, shape, isSwitch, doc, default: value }: Setting = SETTINGS[name];
  const kind = shape.split(",")[0]!.split(" ")[0]!.toUpperCase();
  const left = isSwitch
    ? `--${flag}`
    : `--${flag} ${shape.includes(",") && !/\d/.test(shape) ? shape.replaceAll(", ", "|") : kind}`;
  const [sentence] = doc.replaceAll("`", "").split(/(?<=\.) /);
  const standing =
    value === undefined || (Array.isArray(value) && value.length === 0) || isSwitch ? "" : ` Default ${shown(value)}.`;
  return [left, `${sentence} (${env.join(", ")})${standing}`];
}

function shown(value: unknown): string {
  return Array.isArray(value) ? value.join(",") : typeof value === "string" ? value : JSON.stringify(value);
}
