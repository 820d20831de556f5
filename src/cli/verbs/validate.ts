import { counted } from "../../errors/counted.ts";
import type { DefinitionReport } from "../../definition/report.ts";
import { option, type Verb } from "../call.ts";
import { checkText, type DefinitionText, definitionTexts } from "../definition-file.ts";
import { EXIT } from "../exit-code.ts";
import { Failure } from "../failure.ts";
import { catalogueOf } from "../handler-catalogue.ts";
import { shownProblems, shownWarnings } from "../problems-text.ts";

/** Checks files without a server. Every problem of every file is told. */
export const verb: Verb = async (call) => {
  const format = call.json ? "json" : (option(call, "format") ?? "text");
  if (format !== "text" && format !== "json" && format !== "sarif") {
    throw new Failure(EXIT.usage, `--format must be text, json or sarif, not ${JSON.stringify(format)}.`);
  }
  const texts: DefinitionText[] = [];
  const unread: Unread[] = [];
  for (const file of call.args) {
    try {
      texts.push(...(await definitionTexts(call.terminal, file)));
    } catch (error) {
      // One that cannot be read does not hide what the others are like.
      if (!(error instanceof Failure) || call.args.length === 1) throw error;
      unread.push({ file, failure: error });
    }
  }
  const handlers = await catalogueOf(call, texts);
  const checked: Checked[] = [];
  for (const text of texts) checked.push({ file: text.file, report: await checkText(text, handlers) });
  call.terminal.out(shown(format, checked, unread));
  for (const { failure } of unread) call.terminal.err(`millrace: ${failure.message}\n`);
  const [first] = unread;
  if (first !== undefined) return first.failure.exit;
  return checked.some(({ report }) => report.failure !== undefined) ? EXIT.invalid : EXIT.done;
};

interface Checked {
  readonly file: string;
  readonly report: DefinitionReport;
}

interface Unread {
  readonly file: string;
  readonly failure: Failure;
}

function shown(format: "text" | "json" | "sarif", checked: readonly Checked[], unread: readonly Unread[]): string {
  switch (format) {
    case "text":
      return checked.map(asText).join("\n");
    case "json": {
      const all = [...checked.map(asJson), ...unread.map(asUnread)];
      return `${JSON.stringify(all.length === 1 ? all[0] : all, null, 2)}\n`;
    }
    case "sarif":
      return `${JSON.stringify(asSarif(checked), null, 2)}\n`;
  }
}

function asText({ file, report }: Checked): string {
  const { workflow, warnings } = report;
  if (workflow === undefined) return `${shownProblems(file, report).join("\n")}\n`;
  const nodes = counted(workflow.nodes.length, "node");
  return [`${file}: ${workflow.name} is valid, ${nodes}`, ...shownWarnings(warnings), ""].join("\n");
}

function asJson({ file, report }: Checked): object {
  const { workflow, hash, errors, warnings, omitted } = report;
  const good = workflow === undefined ? {} : { name: workflow.name, workflow_definition_id: hash };
  return { file, valid: workflow !== undefined, ...good, errors, warnings, ...(omitted > 0 && { omitted }) };
}

function asUnread({ file, failure }: Unread): object {
  return { file, valid: false, unreadable: failure.message, errors: [], warnings: [] };
}

/** What code scanning tools read. */
function asSarif(checked: readonly Checked[]): object {
  const results = checked.flatMap(({ file, report }) =>
    [
      ...report.errors.map((one) => ["error", one] as const),
      ...report.warnings.map((one) => ["warning", one] as const),
    ].map(([level, { code, message, hint, line = 1, column = 1 }]) => ({
      ruleId: code,
      level,
      message: { text: hint === undefined ? message : `${message} ${hint}` },
      locations: [
        { physicalLocation: { artifactLocation: { uri: file }, region: { startLine: line, startColumn: column } } },
      ],
    })),
  );
  const rules = [...new Set(results.map(({ ruleId }) => ruleId))].map((id) => ({ id }));
  return {
    $schema: "https://json.schemastore.org/sarif-2.1.0.json",
    version: "2.1.0",
    runs: [{ tool: { driver: { name: "millrace", rules } }, results }],
  };
}
