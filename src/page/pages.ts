import * as z from "zod";
import { PAGES } from "../api/http/answering.ts";
import { route, type Reply, type Route } from "../api/http/route.ts";
import { STATUSES, type Status } from "../api/service/executions.ts";
import type { Service } from "../api/service/service.ts";
import type { Workflow } from "../definition/workflow.ts";
import { isOver } from "../drawing/states.ts";
import { executionPage, type PageExecution, type PageLine } from "./execution-page.ts";
import { executionsPage } from "./executions-page.ts";
import { loginPage } from "./login-page.ts";

const tag = PAGES;
const PAGE = { 200: { description: "A page", type: "text/html" } };
const GUARDED_PAGE = { ...PAGE, 303: { description: "Without a key: to the form for one" } };
const LISTED = 50;
const EVENTS = 100;
const LETTERS = 20;
/** Executions with more events show no log. */
const MAX_READ = 2_000;

/** What the handlers of an execution have logged. */
export type ReadLines = (execution: string) => Promise<readonly PageLine[]>;

const statuses = Object.keys(STATUSES) as [Status, ...Status[]];
const listQuery = z.object({ status: z.enum(statuses).optional(), cursor: z.string().optional() });
const runQuery = z.object({ live: z.string().optional() });

/** Pages made by the server: they need no script, and show what the API tells. */
export function pages(service: Service, logs: ReadLines): readonly Route[] {
  return [
    route({
      method: "GET",
      path: "/",
      permission: "read",
      tag,
      summary: "Executions, for people",
      query: listQuery,
      answers: GUARDED_PAGE,
      handle: async ({ query }) => {
        const { status, cursor } = query;
        const [list, reviews, letters] = await Promise.all([
          service.executions.list({ status }, { limit: LISTED, ...(cursor !== undefined && { cursor }) }),
          service.reviews.list({ limit: 10 }),
          // Those that nobody has dealt with, and those in the archive too: the store counts neither.
          service.letters.list({ status: "open" }, { limit: LETTERS }),
        ]);
        const deadLetters = { count: letters.items.length, hasMore: letters.next_cursor !== null };
        const isIncomplete = list.incomplete !== undefined || letters.incomplete !== undefined;
        const shown = { items: list.items, next: list.next_cursor, status, reviews: reviews.items };
        return page(executionsPage({ ...shown, deadLetters, isIncomplete }));
      },
    }),
    route({
      method: "GET",
      path: "/runs/{id}",
      permission: "read",
      tag,
      summary: "One execution with its graph, for people",
      query: runQuery,
      answers: GUARDED_PAGE,
      handle: async ({ params, query }) => page(await runPage(service, logs, params["id"]!, query.live !== undefined)),
    }),
    ...loginRoutes,
    route({
      method: "GET",
      path: "/favicon.ico",
      permission: "open",
      tag,
      summary: "None",
      answers: { 204: { description: "There is no picture" } },
      handle: async () => ({ status: 204 }),
    }),
  ];
}

const nextQuery = z.object({ next: z.string().optional() });
const loginForm = {
  schema: z.object({ key: z.string(), next: z.string().optional() }),
  limitBytes: 8_192,
  isForm: true,
};
const logoutForm = { schema: z.object({}), limitBytes: 1_024, isForm: true };
const GO_ON = { 303: { description: "Go on there" } };

const loginRoutes: readonly Route[] = [
  route({
    method: "GET",
    path: "/login",
    permission: "open",
    tag,
    summary: "A form for a key, for people",
    query: nextQuery,
    answers: PAGE,
    handle: async ({ query, session }) =>
      page(loginPage({ next: ownPath(query.next), isLoggedIn: await session.isOpen() })),
  }),
  route({
    method: "POST",
    path: "/login",
    permission: "open",
    tag,
    summary: "Take a key for a cookie that is good for reading",
    body: loginForm,
    answers: { ...GO_ON, 401: { description: "The form again", type: "text/html" } },
    handle: async ({ body, session }) => {
      const next = ownPath(body.next);
      const cookie = await session.begin(body.key);
      if (cookie !== undefined) return { status: 303, location: next, cookie };
      return page(loginPage({ next, problem: "That is no key of this server.", isLoggedIn: false }), 401);
    },
  }),
  route({
    method: "POST",
    path: "/logout",
    permission: "open",
    tag,
    summary: "End what a login began",
    body: logoutForm,
    answers: GO_ON,
    handle: async ({ session }) => ({ status: 303, location: "/login", cookie: session.end() }),
  }),
];

/** A path of this server; anything else would lead people elsewhere. */
function ownPath(next: string | undefined): string {
  return next !== undefined && /^\/(?![/\\])[\x21-\x7e]*$/.test(next) ? next : "/";
}

function page(text: string, status = 200): Reply {
  return { status, text, type: "text/html; charset=utf-8" };
}

async function runPage(service: Service, logs: ReadLines, id: string, isLive: boolean): Promise<string> {
  const execution = JSON.parse(await service.executions.get(id)) as PageExecution & { readonly seq: number };
  const [workflow, { items: events }, why, lines] = await Promise.all([
    service.executions.definition(id).then((text) => JSON.parse(text) as Workflow),
    service.histories.list(id, Math.max(0, execution.seq - EVENTS), EVENTS),
    isOver(execution.status) ? [] : service.histories.explain(id, undefined).then(({ items }) => items),
    // Whose they are is told by its history, and a page that comes back every two seconds cannot read a long one.
    execution.seq > MAX_READ ? undefined : logs(id),
  ]);
  return executionPage({ execution, workflow, why, events, lines, isLive });
}
