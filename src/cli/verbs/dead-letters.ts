import type { Json } from "../../json/json.ts";
import { type Call, option, type Verb } from "../call.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { Failure } from "../failure.ts";
import { countOption } from "../given-values.ts";
import { printJson, printTable } from "../print.ts";
import { connect, segment, type Server } from "../server.ts";

interface Letter {
  readonly id: string;
  readonly class: string;
  readonly status: string;
  readonly execution_id: string | null;
  readonly node_id: string | null;
  readonly handler: string | null;
  readonly rejected_at: string;
  readonly error: { readonly code?: string; readonly message?: string } | null;
}

export const verb: Verb = async (call) => {
  const server = await connect(call);
  switch (call.command) {
    case "dlq ls":
      return list(call, server);
    case "dlq show":
      printJson(call, await server.get<Json>(`/v1/dlq/${segment(call.args[0]!)}`));
      return EXIT.done;
    case "dlq retry":
      return each(call, async (id) => {
        const answer = await server.post<{ readonly execution_id: string; readonly status: string }>(
          `/v1/dlq/${segment(id)}/retry`,
        );
        return { told: `${id} runs again in ${answer.execution_id}`, answer };
      });
    default:
      return each(call, async (id) => {
        await server.delete(`/v1/dlq/${segment(id)}`);
        return { told: `${id} dropped`, answer: { id } };
      });
  }
};

async function list(call: Call, server: Server): Promise<ExitCode> {
  const query = { class: option(call, "class"), queue: option(call, "queue") };
  const page = await server.list<Letter>("/v1/dlq", query, countOption(call, "limit", 50, 100_000));
  if (call.json) printJson(call, page);
  else if (page.items.length === 0) call.terminal.err("there are no dead letters\n");
  else {
    const rows = page.items.map((one) => [
      one.id,
      one.class,
      one.status,
      one.execution_id ?? "",
      one.node_id ?? "",
      one.rejected_at,
      one.error === null ? "" : `${one.error.code}: ${one.error.message}`,
    ]);
    printTable(call, ["LETTER", "CLASS", "STATUS", "EXECUTION", "NODE", "SINCE", "ERROR"], rows);
  }
  return EXIT.done;
}

/** One after the other; one that cannot be does not keep the rest from being done. */
async function each(
  call: Call,
  act: (id: string) => Promise<{ readonly told: string; readonly answer: unknown }>,
): Promise<ExitCode> {
  const answers: unknown[] = [];
  let exit: ExitCode = EXIT.done;
  for (const id of call.args) {
    try {
      const { told, answer } = await act(id);
      answers.push(answer);
      if (!call.json) call.terminal.out(`${told}\n`);
    } catch (error) {
      if (!(error instanceof Failure) || call.args.length === 1) throw error;
      call.terminal.err(`${id}: ${error.message}\n`);
      if (exit === EXIT.done) exit = error.exit;
    }
  }
  if (call.json) printJson(call, call.args.length === 1 ? answers[0] : answers);
  return exit;
}
