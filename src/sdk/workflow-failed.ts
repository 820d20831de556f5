import { quote } from "../errors/registry.ts";
import type { Json } from "../json/json.ts";
import type { ExecutionView, RunStatus } from "./backend.ts";

/** A run that ended without a result. It can be retried: what completed is kept. */
export class WorkflowFailed extends Error {
  override readonly name = "WorkflowFailed";
  readonly executionId: string;
  readonly workflow: string;
  readonly status: RunStatus;
  /** The node that failed first, if one did. */
  readonly node: string | undefined;
  /** The function of that node that failed, if it was not its body: "when", "over", "title", … */
  readonly part: string | undefined;
  readonly code: string;
  readonly retryable: boolean;
  readonly details: Json | undefined;

  /** `cause`: what a function threw, where it ran in this process. */
  constructor(ended: Pick<ExecutionView, "execution_id" | "workflow" | "status" | "error">, cause?: unknown) {
    const { execution_id: id, workflow, status, error } = ended;
    const [node, part] = error?.node_id?.split("#") ?? [];
    const code = error?.code ?? status;
    const where = node === undefined ? "" : ` at node ${quote(node)}${part === undefined ? "" : ` (${part})`}`;
    const why = error === null ? "" : `: ${error.code}: ${error.message}`;
    super(
      `Workflow ${quote(workflow)} ended ${status}${where} in execution ${id}${why}`,
      cause === undefined ? undefined : { cause },
    );
    this.executionId = id;
    this.workflow = workflow;
    this.status = status;
    this.node = node;
    this.part = part;
    this.code = code;
    this.retryable = error?.retryable ?? false;
    this.details = error?.details;
  }
}

/** A result was not there in time. The run goes on. */
export class ResultTimeout extends Error {
  override readonly name = "ResultTimeout";
  readonly executionId: string;

  constructor(executionId: string, timeoutMs: number) {
    super(`Execution ${executionId} did not end within ${timeoutMs} ms; it goes on`);
    this.executionId = executionId;
  }
}
