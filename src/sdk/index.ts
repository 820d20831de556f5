export { workflow, type NoInput } from "./workflow-builder.ts";
export type { Builder, Decision } from "./builder.ts";
export type { Workflow } from "./workflow.ts";
export type { Handle } from "./dependency.ts";
export type { ConditionalHandle, End, Node, NodeError, Outcome, Result, Router } from "./handle.ts";
export type { Duration } from "./duration.ts";
export { type Expr, expr, type Ref, secret, text } from "./expression.ts";
export { jsonSchema, type StandardSchema, type } from "./standard-schema.ts";
export type { Config, Retry, RetryPolicy, WorkflowOptions } from "./options.ts";
export type {
  Breaker,
  Budget,
  Cache,
  Concurrency,
  Limit,
  NodeLimit,
  WorkflowBudget,
  WorkflowConcurrency,
} from "./limits.ts";
export type { TaskContext } from "./task-context.ts";
export { InvalidWorkflow } from "./invalid-workflow.ts";
export { type EmbeddedEngine, embedded, type EmbeddedOptions } from "./embedded.ts";
export { connect, type ConnectOptions } from "./connect.ts";
export { type RunningWorker, worker, type WorkerLog, type WorkerOptions } from "./worker.ts";
export { type HandlerFunction, type Handlers, handlers } from "./handlers.ts";
export type { Client, InputArguments, StartOptions } from "./client.ts";
export type { NodeName, RetryRequest, RunEvent, RunHandle, WaitOptions } from "./run-handle.ts";
export type { ExecutionView, NodeView, RunStatus } from "./backend.ts";
export { ResultTimeout, WorkflowFailed } from "./workflow-failed.ts";
export { ApiError, type ApiFault, ServerUnreachable } from "./api-error.ts";
export { type DefinedHandler, defineHandler } from "../handlers/define-handler.ts";
export { type HandlerCall, HandlerError } from "../worker/handler.ts";
export { StoreError, type StoreErrorCode } from "../store/store-error.ts";
export { MillraceError } from "../errors/millrace-error.ts";
export type { Json, JsonObject } from "../json/json.ts";
