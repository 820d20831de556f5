/** The few requests of the HTTP API that the programs of this example make. */
export interface Execution {
  readonly execution_id: string;
  readonly status: string;
  readonly created_at: string;
  readonly finished_at: string | null;
  readonly output: { readonly done?: { readonly result: DocumentResult }; readonly result?: DocumentResult } | null;
  readonly nodes: Readonly<Record<string, ExecutionNode>>;
  readonly error: { readonly code: string; readonly message: string } | null;
}

export interface ExecutionNode {
  readonly status: string;
  readonly reason: string | null;
  readonly attempt: number;
  readonly output: never;
}

/** What the node `result` gives. */
export interface DocumentResult {
  readonly document: string;
  readonly name: string;
  readonly status: string;
  readonly confidence: number;
  readonly problems: readonly { readonly rule: string; readonly path: string; readonly message: string }[];
  readonly values: Readonly<Record<string, unknown>>;
  readonly locks: Readonly<Record<string, unknown>>;
}

const OPEN: ReadonlySet<string> = new Set(["PENDING", "RUNNING", "PAUSED"]);
const POLL_MS = 25;

export class Api {
  readonly #url: string;

  constructor(url: string) {
    this.#url = url;
  }

  async request<Answer>(path: string, body?: string | object): Promise<Answer> {
    const isText = typeof body === "string";
    const answer = await fetch(`${this.#url}/v1${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: { "content-type": isText ? "application/yaml" : "application/json" },
      ...(body !== undefined && { body: isText ? body : JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${path} was answered with ${answer.status}: ${text}`);
    return JSON.parse(text) as Answer;
  }

  async start(workflow: string, input: object): Promise<string> {
    const path = `/workflows/${encodeURIComponent(workflow)}/executions`;
    return (await this.request<{ execution_id: string }>(path, { input_params: input })).execution_id;
  }

  /** Waits for the end of an execution, or for what is asked for. */
  async wait(id: string, isDone = (execution: Execution): boolean => !OPEN.has(execution.status)): Promise<Execution> {
    for (;;) {
      const execution = await this.request<Execution>(`/executions/${id}`);
      if (isDone(execution) || !OPEN.has(execution.status)) return execution;
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }
}
