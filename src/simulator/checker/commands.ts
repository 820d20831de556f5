import { isJsonObject, type Json } from "../../json/json.ts";
import { type Commit, type Evidence, executionOf, GENERATION, isExecution } from "./evidence.ts";
import { type Found, type Invariant, placeOf } from "./invariant.ts";
import { journalFacts } from "./journal-facts.ts";
import type { Story } from "./story.ts";

/** A command is decided once, because somebody gave it; what was answered is in the journal. */
const oneDecision: Invariant = {
  id: "I43",
  name: "one decision",
  before(step, found) {
    const { story, event, evidence, commit } = step;
    if (event.kind !== "commandApplied" && event.kind !== "commandRefused") return;
    const { command, request } = event;
    if (story.requests.has(request)) found(`The ${command} ${request} was decided a second time`, placeOf(step));
    else if (event.kind === "commandApplied" && story.cancelledIn !== null) {
      found(`The ${command} ${request} was applied, and it had been cancelled before`, placeOf(step));
    }
    if (command !== "cancel") return;
    const cancels = evidence.clients.get(story.id)?.cancels ?? [];
    const wasAsked = cancels.some(({ entry, order }) => entry.request === request && order < commit.order);
    if (!wasAsked) found(`The cancel ${request} was decided, and nobody had sent it`, placeOf(step));
  },
  world(evidence, _stories, found) {
    const { commands } = journalFacts(evidence);
    const { lossy } = evidence.world;
    for (const [execution, { cancelled }] of evidence.clients) {
      for (const { entry } of cancelled) {
        const isApplied = entry.outcome === "ok";
        if (!isApplied && entry.code !== "ALREADY_TERMINAL") continue;
        const decided = (commands.get(entry.request) ?? []).filter(({ commit }) => lossy || commit.voidedAt === null);
        if (decided.some(({ applied }) => applied === isApplied)) continue;
        const answer = isApplied ? "ok" : entry.code;
        found(`The cancel ${entry.request} was answered ${answer}, and no event of the journal says so`, { execution });
      }
    }
  },
};

interface Mail {
  readonly to: string;
  readonly instance: Json | undefined;
  readonly status: Json | undefined;
  readonly generation: Json | undefined;
  readonly commit: Commit;
}

/** The end of a child is told to its parent by the commit that ends it, once, and reaches it once. */
const children: Invariant = {
  id: "I45",
  name: "children",
  world(evidence, stories, found) {
    const mails = mailOf(evidence);
    const counted = countedBy(evidence, stories, found);
    for (const [execution, story] of stories) {
      const sent = mails.get(story.entity) ?? [];
      mails.delete(story.entity);
      const parent = story.accepted?.parent;
      if (parent === undefined || story.ended === null) {
        const [wrong] = sent;
        const why = parent === undefined ? "it has no parent" : "it has not ended";
        if (wrong !== undefined)
          found(`It told ${wrong.to} of its end, and ${why}`, { execution, commit: wrong.commit });
        continue;
      }
      wasTold(story, sent, found);
      const isKept = evidence.world.liveness && !isExecution(parent.entity);
      if (isKept && !counted.has(`${parent.entity} ${story.entity}`)) {
        found(`It ended, and its parent ${parent.entity} never heard of it`, { execution, commit: story.endedIn! });
      }
    }
    for (const [child, [mail]] of mails)
      found(`${mail!.to} was told of the end of ${child}, which has no journal`, { commit: mail!.commit });
  },
};

function wasTold(story: Story, sent: readonly Mail[], found: Found): void {
  const place = { execution: story.id, commit: story.endedIn! };
  const parent = story.accepted!.parent!;
  if (sent.length !== 1) return found(`It ended, and told its parent ${parent.entity} ${sent.length} times`, place);
  const [mail] = sent;
  if (mail!.commit !== story.endedIn) {
    return found("Its parent was not told by the commit that ended it", { ...place, commit: mail!.commit });
  }
  const { to, instance, status, generation } = mail!;
  const isRight = to === parent.entity && instance === parent.instance && status === story.ended!.status;
  if (isRight && generation === GENERATION) return;
  found(
    `It ended ${story.ended!.status}, and ${to} was told ${JSON.stringify({ instance, status, generation })}`,
    place,
  );
}

/** Mail about ends, by child. */
function mailOf({ surviving }: Evidence): Map<string, Mail[]> {
  const mails = new Map<string, Mail[]>();
  for (const commit of surviving) {
    for (const { to, body } of commit.entry.mail) {
      if (!isJsonObject(body) || body["kind"] !== "childEnded" || typeof body["child"] !== "string") continue;
      const mail = { to, instance: body["instance"], status: body["status"], generation: body["generation"], commit };
      const list = mails.get(body["child"]);
      if (list === undefined) mails.set(body["child"], [mail]);
      else list.push(mail);
    }
  }
  return mails;
}

/** What the simulator's own parents, the tallies, wrote down: `childCounted` with `child` as `entity:generation`. */
function countedBy({ surviving }: Evidence, stories: ReadonlyMap<string, Story>, found: Found): ReadonlySet<string> {
  const counted = new Set<string>();
  for (const commit of surviving) {
    for (const { entity, events } of commit.entry.records) {
      if (isExecution(entity)) continue;
      for (const event of events as readonly {
        readonly kind: string;
        readonly child?: unknown;
        readonly status?: unknown;
      }[]) {
        if (event.kind !== "childCounted" || typeof event.child !== "string") continue;
        const child = event.child.slice(0, event.child.lastIndexOf(":"));
        const execution = executionOf(child);
        const name = `${entity} ${child}`;
        const place = { execution, commit };
        if (counted.has(name)) found(`${entity} counted it twice`, place);
        counted.add(name);
        const story = stories.get(execution);
        const isEnded = story?.endedIn !== undefined && story.endedIn !== null && story.endedIn.order < commit.order;
        if (!isEnded || story.accepted?.parent?.entity !== entity)
          found(`${entity} counted it, and was never told of its end`, place);
        else if (story.ended!.status !== event.status) found(`${entity} counted it as ${String(event.status)}`, place);
      }
    }
  }
  return counted;
}

export const COMMANDS: readonly Invariant[] = [oneDecision, children];
