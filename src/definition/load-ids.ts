import { quote } from "../errors/registry.ts";
import { isJsonObject, type Json, type JsonObject } from "../json/json.ts";
import { typeName, withArticle } from "../json/type-name.ts";
import { ID_PATTERN, NODE_FIELDS } from "./fields.ts";
import type { NodeList } from "./node-list.ts";
import type { ProblemList } from "./problems.ts";

const VALID_ID = new RegExp(ID_PATTERN);
const ID_NAMES = ["id", ...NODE_FIELDS["id"]!.aliases!];

/** Words that templates use for something else. */
const RESERVED: ReadonlyMap<string, string> = new Map([
  ["__proto__", "it is a name of JavaScript's own"],
  ["constructor", "it is a name of JavaScript's own"],
  ["prototype", "it is a name of JavaScript's own"],
  ["nodes", 'templates use it, as in nodes["some id"]'],
  ["secrets", "templates use it, as in secrets.NAME"],
  ["item", "templates inside a map use it"],
  ["index", "templates inside a map use it"],
  ["execution", "templates use it, as in execution.id"],
]);

export interface LoadedIds {
  /** One for each node; a node without a usable id gets a name no other node can refer to. */
  readonly ids: readonly string[];
  /** With duplicate ids the first one counts. */
  readonly indexOf: ReadonlyMap<string, number>;
}

export function loadIds(list: NodeList, problems: ProblemList): LoadedIds {
  const ids: string[] = [];
  const indexOf = new Map<string, number>();
  for (let index = 0; index < list.raw.length; index++) {
    const id = loadId(list, index, problems) ?? `nodes[${index}]`;
    ids.push(id);
    const first = indexOf.get(id);
    if (first === undefined) indexOf.set(id, index);
    else {
      const hint = "Ids are compared exactly; give one of the two another.";
      const place = list.pointer(first);
      problems.add("DUPLICATE_NODE_ID", list.field(index, "id"), { id, first: place }, { hint });
    }
  }
  return { ids, indexOf };
}

function loadId(list: NodeList, index: number, problems: ProblemList): string | undefined {
  const raw = list.raw[index]!;
  const key = list.keys?.[index];
  if (!isJsonObject(raw)) {
    const field = key ?? `nodes[${index}]`;
    const got = withArticle(typeName(raw));
    problems.add("INVALID_TYPE", list.pointer(index), { field, expected: "a node: an object", got });
    return key;
  }
  const written = writtenId(raw);
  if (key !== undefined && written !== undefined && written !== key) {
    const reason = `The node is written under ${quote(key)}, but calls itself ${typeof written === "string" ? quote(written) : "otherwise"}`;
    problems.add(
      "INVALID_NODE_ID",
      list.field(index, "id"),
      { reason },
      { hint: 'Leave the "id" out, or make them equal.' },
    );
  }
  const id = key ?? written;
  const at = (): string => (key === undefined ? list.field(index, "id") : list.pointer(index));
  if (id === undefined) {
    problems.add("INVALID_NODE_ID", list.pointer(index), { reason: "The node has no id" }, { hint: 'Add "id".' });
    return undefined;
  }
  if (typeof id !== "string") {
    const reason = `An id must be text, not ${withArticle(typeName(id))}`;
    const hint = typeof id === "number" ? `Write it in quotes: "${id}".` : undefined;
    problems.add("INVALID_NODE_ID", at(), { reason }, { hint });
    return undefined;
  }
  checkId(id, raw, at, key !== undefined, problems);
  return id;
}

function writtenId(raw: JsonObject): Json | undefined {
  for (const name of ID_NAMES) if (raw[name] !== undefined && raw[name] !== null) return raw[name];
  return undefined;
}

function checkId(id: string, raw: JsonObject, at: () => string, atKey: boolean, problems: ProblemList): void {
  const reserved = RESERVED.get(id);
  if (reserved !== undefined) {
    problems.add(
      "RESERVED_ID",
      at(),
      { id, reason: reserved },
      { hint: `Call it ${quote(`${id.replaceAll("_", "")}_1`)}.`, atKey },
    );
  } else if (!VALID_ID.test(id)) {
    const reason = `${quote(id)} is not a valid id: ${whyInvalid(id)}`;
    problems.add("INVALID_NODE_ID", at(), { reason }, { hint: validIdHint(id), atKey });
  } else if (id === "input" && raw["handler"] !== "input") {
    const reason = 'only a node with the handler "input" may be called so, because templates read the input by it';
    problems.add("RESERVED_ID", at(), { id, reason }, { hint: 'Choose another id, or use "handler": "input".', atKey });
  }
}

function whyInvalid(id: string): string {
  if (id === "") return "it is empty";
  if (id.length > 128) return `it has ${id.length} characters, at most 128 are allowed`;
  const bad = /[^A-Za-z0-9_.#-]/u.exec(id);
  if (bad !== null) {
    const code = bad[0].codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0");
    return `it contains ${/^[!-~]$/.test(bad[0]) ? quote(bad[0]) : `U+${code}`}`;
  }
  return `it starts with ${quote(id[0]!)}`;
}

function validIdHint(id: string): string {
  const fixed = id
    .replaceAll(/[^A-Za-z0-9_.#-]+/g, "_")
    .replace(/^[^A-Za-z0-9_]/, "_")
    .slice(0, 60);
  const rule = "Use letters, digits, _ . # and -, at most 128, starting with a letter, digit or _.";
  return VALID_ID.test(fixed) && fixed !== "_" ? `For instance ${quote(fixed)}. ${rule}` : rule;
}
