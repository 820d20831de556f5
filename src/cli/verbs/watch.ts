import { hasSwitch, type Verb } from "../call.ts";
import { followExecution } from "../follow-execution.ts";
import { durationOption } from "../given-values.ts";
import { connect } from "../server.ts";
import { serverSource } from "../server-source.ts";

export const verb: Verb = async (call) => {
  const server = await connect(call);
  const id = await server.idOf(call.args[0]!);
  return followExecution(call, serverSource(server), id, {
    timeoutMs: durationOption(call, "timeout"),
    leaveReviews: hasSwitch(call, "no-wait-approval"),
    onLeave: { goesOn: true },
  });
};
