import { nearestName } from "../errors/nearest-name.ts";
import { type SettingName, SETTINGS } from "../settings/declarations.ts";
import type { Setting } from "../settings/setting.ts";
import { COMMANDS, COMMON_OPTIONS, type CommandSpec, type OptionSpec } from "./commands.ts";
import { EXIT } from "./exit-code.ts";
import { Failure } from "./failure.ts";

export interface Parsed {
  readonly spec: CommandSpec;
  readonly args: readonly string[];
  readonly options: Readonly<Record<string, readonly string[] | true>>;
  readonly flags: Readonly<Partial<Record<SettingName, unknown>>>;
}

/** The command that words name, and how many of them it takes. The longer name counts. */
function findCommand(words: readonly string[]): { readonly spec: CommandSpec; readonly taken: number } | undefined {
  for (const taken of [2, 1]) {
    if (words.length < taken) continue;
    const name = words.slice(0, taken).join(" ");
    const spec = COMMANDS.find((one) => one.name === name || one.also.includes(name));
    // `dlq foo` is no `dlq ls` with an argument: the word was meant to say what to do.
    const isShort = spec !== undefined && spec.name !== name && spec.args.length === 0 && words.length > taken;
    if (spec !== undefined && !isShort) return { spec, taken };
  }
  return undefined;
}

/** Reads a command line. What it cannot read it refuses with a sentence; nothing is ever guessed. */
export function parseArguments(argv: readonly string[]): Parsed {
  const begin = beginOf(argv);
  const length = argv.slice(begin).findIndex((word) => word.startsWith("-"));
  const words = length < 0 ? argv.slice(begin) : argv.slice(begin, begin + length);
  const found = findCommand(words);
  if (found === undefined) throw unknownCommand(words);
  return readRest(found.spec, [...argv.slice(0, begin), ...argv.slice(begin + found.taken)]);
}

/**
 * Where the command stands. Switches may come before it, and the options that all commands have; others with a value may not, as
 * nobody knows yet which have one.
 */
function beginOf(argv: readonly string[]): number {
  const common = COMMON_OPTIONS.filter(({ value }) => value !== undefined).map(({ name }) => `--${name}`);
  let begin = 0;
  while (argv[begin]?.startsWith("-") === true) begin += common.includes(argv[begin]!) ? 2 : 1;
  return Math.min(begin, argv.length);
}

function readRest(spec: CommandSpec, words: readonly string[]): Parsed {
  const options: Record<string, string[] | true> = {};
  const flags: Partial<Record<SettingName, unknown>> = {};
  const args: string[] = [];
  const known = knownOptions(spec);
  for (let i = 0; i < words.length; i++) {
    const word = words[i]!;
    if (word === "--") {
      args.push(...words.slice(i + 1));
      break;
    }
    // A lone dash is stdin, and a negative number is a value.
    if (!word.startsWith("-") || word === "-" || /^-\d/.test(word)) {
      args.push(word);
      continue;
    }
    const equals = word.indexOf("=");
    const name = equals < 0 ? word : word.slice(0, equals);
    const option = known.get(name);
    if (option === undefined) throw unknownOption(spec, name, known);
    let value: string | undefined = equals < 0 ? undefined : word.slice(equals + 1);
    if (option.takesValue && value === undefined) {
      value = words[++i];
      if (value === undefined) throw usage(spec, `${name} needs a value.`);
    }
    if (!option.takesValue && value !== undefined && option.setting === undefined) {
      throw usage(spec, `${name} takes no value.`);
    }
    if (option.setting !== undefined) flags[option.setting] = option.isOff ? "false" : (value ?? "true");
    else if (value === undefined) options[option.name] = true;
    else {
      const list = options[option.name];
      if (Array.isArray(list)) list.push(value);
      else options[option.name] = [value];
    }
  }
  if (options["help"] === undefined) checkArgs(spec, args);
  return { spec, args, options, flags };
}

interface Known {
  readonly name: string;
  readonly takesValue: boolean;
  readonly setting?: SettingName;
  /** `--no-…` of a switch that is a setting. */
  readonly isOff?: boolean;
}

function knownOptions(spec: CommandSpec): Map<string, Known> {
  const known = new Map<string, Known>();
  const add = ({ name, short, value }: OptionSpec): void => {
    const entry = { name, takesValue: value !== undefined };
    known.set(`--${name}`, entry);
    if (short !== undefined) known.set(`-${short}`, entry);
  };
  for (const setting of spec.settings) {
    const { flag, isSwitch }: Setting = SETTINGS[setting];
    known.set(`--${flag}`, { name: flag!, takesValue: !isSwitch, setting });
    if (isSwitch) known.set(`--no-${flag}`, { name: flag!, takesValue: false, setting, isOff: true });
  }
  for (const one of [...COMMON_OPTIONS, ...spec.options]) add(one);
  return known;
}

function checkArgs(spec: CommandSpec, args: readonly string[]): void {
  const needed = spec.args.filter((arg) => arg.startsWith("<"));
  if (args.length < needed.length) throw usage(spec, `${needed[args.length]} is missing.`);
  const takesMany = spec.args.at(-1)?.includes("…") === true;
  if (!takesMany && args.length > spec.args.length) {
    throw usage(spec, `${JSON.stringify(args[spec.args.length])} is one argument too many.`);
  }
}

function unknownCommand(words: readonly string[]): Failure {
  const [first = "", second] = words;
  const names = COMMANDS.flatMap(({ name, also }) => [name, ...also]);
  const members = names.filter((name) => name.startsWith(`${first} `));
  if (members.length > 0) {
    const nearest = second === undefined ? undefined : nearestName(`${first} ${second}`, members);
    const what =
      second === undefined
        ? `"${first}" needs one more word`
        : `there is no command ${JSON.stringify(`${first} ${second}`)}`;
    const hint = nearest === undefined ? `one of: ${[...new Set(members)].join(", ")}` : `did you mean "${nearest}"?`;
    return new Failure(EXIT.usage, `${what}.`, { hint });
  }
  const nearest = nearestName(
    first,
    names.filter((name) => !name.includes(" ")),
  );
  const hint = nearest === undefined ? "millrace --help lists all commands" : `did you mean "${nearest}"?`;
  return new Failure(EXIT.usage, `there is no command ${JSON.stringify(first)}.`, { hint });
}

function unknownOption(spec: CommandSpec, name: string, known: ReadonlyMap<string, Known>): Failure {
  const nearest = nearestName(name, known.keys());
  const hint = nearest === undefined ? `millrace ${spec.name} --help lists its options` : `did you mean ${nearest}?`;
  return new Failure(EXIT.usage, `"${spec.name}" has no option ${JSON.stringify(name)}.`, { hint });
}

export function usage(spec: CommandSpec, reason: string): Failure {
  return new Failure(EXIT.usage, reason, { hint: `usage: millrace ${[spec.name, ...spec.args].join(" ")} [options]` });
}
