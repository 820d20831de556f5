import type { Verb } from "../call.ts";
import { COMMANDS, COMMON_OPTIONS } from "../commands.ts";
import { EXIT } from "../exit-code.ts";
import { Failure } from "../failure.ts";
import { SETTINGS } from "../../settings/declarations.ts";
import type { Setting } from "../../settings/setting.ts";

/** A script that completes commands and options, made from the table of commands. Files complete everything else. */
export const verb: Verb = async (call) => {
  const scripts: Readonly<Record<string, () => string>> = { bash, zsh, fish };
  const script = Object.hasOwn(scripts, call.args[0]!) ? scripts[call.args[0]!] : undefined;
  if (script === undefined) {
    throw new Failure(EXIT.usage, `there is no completion for ${JSON.stringify(call.args[0])}.`, {
      hint: "bash, zsh or fish",
    });
  }
  call.terminal.out(script());
  return EXIT.done;
};

/** Each command in all its forms, with its options. */
function words(): readonly (readonly [command: string, options: readonly string[]])[] {
  return COMMANDS.flatMap(({ name, also, options, settings }) => {
    const own = [...options, ...COMMON_OPTIONS].map((option) => `--${option.name}`);
    const flags = settings.map((setting) => `--${(SETTINGS[setting] as Setting).flag}`);
    return [name, ...also].map((form) => [form, [...own, ...flags].sort()] as const);
  });
}

function firstWords(): readonly string[] {
  return [...new Set(words().map(([command]) => command.split(" ")[0]!))].sort();
}

function secondWords(): ReadonlyMap<string, readonly string[]> {
  const pairs = words()
    .map(([command]) => command.split(" "))
    .filter((parts) => parts.length === 2);
  return new Map(
    [...Map.groupBy(pairs, ([first]) => first!)].map(([first, all]) => [
      first,
      all.map(([, second]) => second!).sort(),
    ]),
  );
}

function bash(): string {
  const seconds = [...secondWords()].map(([first, all]) => `      ${first}) words="${all.join(" ")}" ;;`);
  const options = words().map(([command, all]) => `    "${command}") words="${all.join(" ")}" ;;`);
  return `# millrace completion bash; use it with: source <(millrace completion bash)
_millrace() {
  local word="\${COMP_WORDS[COMP_CWORD]}" first="\${COMP_WORDS[1]}" second="\${COMP_WORDS[2]}" words=""
  if [[ $COMP_CWORD -eq 1 ]]; then
    words="${firstWords().join(" ")}"
  elif [[ $word == -* ]]; then
    case "$first $second" in
${options.filter((line) => line.includes(" ", 5) && /^ {4}"\S+ \S+"/.test(line)).join("\n")}
    *) case "$first" in
${options.filter((line) => /^ {4}"\S+"\)/.test(line)).join("\n")}
    esac ;;
    esac
  elif [[ $COMP_CWORD -eq 2 ]]; then
    case "$first" in
${seconds.join("\n")}
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o default -F _millrace millrace
`;
}

function zsh(): string {
  return `#compdef millrace
# millrace completion zsh; use it with: source <(millrace completion zsh)
autoload -U +X bashcompinit && bashcompinit
${bash()}`;
}

function fish(): string {
  const lines = words().flatMap(([command, options]) => {
    const [first, second] = command.split(" ");
    const condition =
      second === undefined
        ? `__fish_seen_subcommand_from ${first}`
        : `__fish_seen_subcommand_from ${first}; and __fish_seen_subcommand_from ${second}`;
    return options.map((option) => `complete -c millrace -n '${condition}' -l ${option.slice(2)}`);
  });
  const seconds = [...secondWords()].map(
    ([first, all]) => `complete -c millrace -n '__fish_seen_subcommand_from ${first}' -a '${all.join(" ")}'`,
  );
  return `# millrace completion fish; use it with: millrace completion fish | source
complete -c millrace -n __fish_use_subcommand -f -a '${firstWords().join(" ")}'
${seconds.join("\n")}
${lines.join("\n")}
`;
}
