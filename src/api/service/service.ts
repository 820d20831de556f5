import type { HandlerCatalogue } from "../../definition/handlers.ts";
import type { Host } from "../../host/host.ts";
import { Requests } from "../../inbox/requests.ts";
import type { Inbox, Store } from "../../store/contract.ts";
import { Batches } from "./batches.ts";
import { Commands } from "./commands.ts";
import { Decisions } from "./decisions.ts";
import { DefinitionChecker } from "./definition-checker.ts";
import { Definitions } from "./definitions.ts";
import { ExecutionReader } from "./execution-reader.ts";
import { checkedConfig } from "./edited-config.ts";
import { Executions } from "./executions.ts";
import { Gateway } from "./gateway.ts";
import { guarded } from "./guarded-store.ts";
import { HandlerDirectory } from "./handler-directory.ts";
import { Histories } from "./histories.ts";
import { type EditCheck, Letters } from "./letters.ts";
import { Limits } from "./limits.ts";
import { Overview } from "./overview.ts";
import { Paging } from "./paging.ts";
import { Payloads } from "./payloads.ts";
import { type HighWater, Pressure } from "./pressure.ts";
import type { ReadyChecks } from "./readiness.ts";
import { Reviews } from "./reviews.ts";
import { Signing } from "./signing.ts";
import { Submissions } from "./submissions.ts";
import { Traces } from "./traces.ts";
import { Workflows } from "./workflows.ts";

export interface ServiceOptions {
  readonly store: Store;
  readonly host: Host;
  /** Handlers that are registered in this process, and whether others are accepted that nobody serves yet. */
  readonly handlers?: HandlerCatalogue;
  /** Whoever asks for such handlers is refused: a misspelt one would wait for ever where nobody looks. */
  readonly isStrict?: boolean;
  /** Where `{{ secrets.NAME }}` comes from, for tasks that go to workers elsewhere. */
  readonly secret?: (name: string) => string | undefined;
  /** Beyond which new work is refused. */
  readonly highWater?: HighWater;
  /** The part of its memory that this process uses. */
  readonly memory?: () => number;
  /** Parts that are shown with the store's readiness, and without which requests are served all the same. */
  readonly notes?: ReadyChecks;
}

/**
 * Everything that can be asked of Millrace, without a transport: what HTTP serves, and what the SDK and the CLI call in
 * their own process. It owns nothing and decides nothing; it asks the owners, and reads what they have committed.
 */
export class Service {
  readonly store: Store;
  readonly host: Host;
  readonly submissions: Submissions;
  readonly batches: Batches;
  readonly commands: Commands;
  readonly executions: Executions;
  readonly histories: Histories;
  readonly traces: Traces;
  readonly workflows: Workflows;
  readonly letters: Letters;
  readonly reviews: Reviews;
  readonly gateway: Gateway;
  readonly overview: Overview;
  readonly limits: Limits;
  readonly pressure: Pressure;
  readonly paging: Paging;
  readonly #requests: Requests;

  constructor(options: ServiceOptions) {
    const { host } = options;
    const store = guarded(options.store);
    this.store = store;
    this.host = host;
    const requests = new Requests({ ...store, inbox: ownLimit(options.store.inbox, store.inbox) }, host);
    const signing = new Signing(store);
    const paging = new Paging(signing);
    this.paging = paging;
    const directory = new HandlerDirectory(store, host, options.handlers);
    const checker = new DefinitionChecker(directory);
    const definitions = new Definitions(store);
    const reader = new ExecutionReader(store, definitions);
    const payloads = new Payloads(store, reader);
    const decisions = new Decisions(requests, host, reader);
    const secret = options.secret ?? (() => undefined);
    this.#requests = requests;
    const allowMissing = options.handlers?.allowMissing ?? false;
    this.submissions = new Submissions({
      store,
      host,
      checker,
      definitions,
      reader,
      payloads,
      decisions,
      allowMissing,
      isStrict: options.isStrict ?? false,
    });
    this.commands = new Commands({ decisions, reader, payloads, checker, definitions });
    this.executions = new Executions({ store, reader, definitions, payloads, paging });
    const { submissions, commands, executions } = this;
    this.batches = new Batches({ submissions, commands, executions, reader, payloads, paging });
    this.limits = new Limits(store, host, requests, paging);
    this.histories = new Histories(store, host, reader, directory, this.limits, paging);
    this.traces = new Traces(reader);
    this.workflows = new Workflows(store, this.submissions, reader, paging);
    const checked: EditCheck = (...edit) => checkedConfig(checker, reader, ...edit);
    this.letters = new Letters({ store, host, decisions, reader, paging, checked });
    this.reviews = new Reviews(store, decisions, reader, paging);
    this.gateway = new Gateway({ store, host, requests, signing, directory, reader, secret });
    const { highWater, memory } = options;
    this.pressure = new Pressure({
      store,
      host,
      ...(highWater !== undefined && { highWater }),
      ...(memory !== undefined && { memory }),
    });
    this.overview = new Overview(store, host, this.pressure, options.notes);
  }

  start(): void {
    this.#requests.start();
  }

  /** Nobody is made to wait any longer; what was asked is still answered. */
  drain(): void {
    this.gateway.close();
  }

  stop(): void {
    this.gateway.close();
    this.#requests.stop();
  }
}

/** Whoever waits for a decision has a limit for all of it, and tells himself what ails the store: an append needs no guard. */
function ownLimit(inbox: Inbox, guardedInbox: Inbox): Inbox {
  return {
    append: (messages) => inbox.append(messages),
    read: (...asked) => guardedInbox.read(...asked),
    replies: (...asked) => guardedInbox.replies(...asked),
  };
}
