import { option, type Verb } from "../call.ts";
import { EXIT } from "../exit-code.ts";
import { Failure } from "../failure.ts";
import { jsonOption } from "../given-values.ts";
import { printJson } from "../print.ts";
import { connect, segment, type Server } from "../server.ts";
import type { Listed } from "../shapes.ts";

/** How a review stands. */
interface Review {
  readonly status: "open" | "closed";
  /** What the first of two people has said. */
  readonly first: object | null;
}

/** approve and reject. */
export const verb: Verb = async (call) => {
  const server = await connect(call);
  const id = await reviewOf(server, call.args[0]!);
  const data = await jsonOption(call, "data");
  const comment = option(call, "comment");
  const body = {
    decision: call.command,
    ...(data !== undefined && { data }),
    ...(comment !== undefined && { comment }),
  };
  const answer = await server.post<{ readonly execution_id: string; readonly status: string }>(
    `/v1/reviews/${segment(id)}`,
    { body },
  );
  if (call.json) printJson(call, answer);
  else {
    const { status, first } = await server.get<Review>(`/v1/reviews/${segment(id)}`);
    const isHalf = status === "open" && first !== null;
    const decided = call.command === "approve" ? "approved" : "rejected";
    call.terminal.out(`${id} ${decided}${isHalf ? " by one person; it stays open until a second decides" : ""}\n`);
  }
  return EXIT.done;
};

/** `@latest` names the review that was opened last. What has failed asks nobody any more. */
export async function reviewOf(server: Server, name: string): Promise<string> {
  if (!name.startsWith("@")) return name;
  if (name !== "@latest") {
    throw new Failure(EXIT.usage, `${JSON.stringify(name)} names no review.`, {
      hint: "use an id or @latest; millrace reviews lists what waits for a person",
    });
  }
  const { items } = await server.get<Listed<{ readonly id: string }>>("/v1/reviews", { limit: "1" });
  if (items[0] === undefined) throw new Failure(EXIT.notFound, "nothing waits for a person.");
  return items[0].id;
}
