import { lookup as dnsLookup, type LookupAddress, type LookupOptions } from "node:dns";
import { isIP, type Socket } from "node:net";
import type { Agent, buildConnector } from "undici";
import { canonicalHost, withoutBrackets } from "../settings/egress-entry.ts";
import type { Egress } from "./egress.ts";

/** No connection was made: whoever it would lead to must not be called. */
export class EgressBlocked extends Error {
  override readonly name = "EgressBlocked";
  readonly host: string;

  constructor(host: string) {
    super(`calls to ${host} are not allowed`);
    this.host = host;
  }
}

/** As `dns.lookup` with `all`. */
export type Lookup = (
  hostname: string,
  options: LookupOptions & { readonly all: true },
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

const CONNECT_TIMEOUT_MS = 10_000;

/**
 * Connections that the egress rules allow, and no others. A literal address is judged before anything is sent (a lookup
 * would never be asked), a name by every address it resolves to in the lookup that the connection itself uses, and at
 * last the address that was reached. Each redirect is a new request and comes through here again.
 */
export async function openAgent(egress: Egress, lookup: Lookup = dnsLookup): Promise<Agent> {
  // Loading it takes a fifth of a second, which a worker that calls nobody need not spend.
  const undici = await import("undici");
  // The lengths of calls are limited by their tasks, not here.
  const common = { timeout: CONNECT_TIMEOUT_MS, allowH2: false };
  const anywhere = undici.buildConnector({
    ...common,
    lookup: (host, options, done) => answer(lookup, host, options, done),
  });
  const guarded = undici.buildConnector({
    ...common,
    lookup: (host, options, done) =>
      answer(lookup, host, options, done, ({ address }) => egress.allowsAddress(address)),
  });

  const connect: buildConnector.connector = (options, callback) => {
    const host = withoutBrackets(options.hostname);
    const port = Number(options.port) || (options.protocol === "https:" ? 443 : 80);
    if (egress.allowsHost(host, port)) return anywhere(options, callback);
    // A resolver may not know it with a dot behind it, or ask the network for it: no name is more plainly this machine.
    const literal = /(^|\.)localhost\.?$/i.test(host) ? "127.0.0.1" : host;
    if (isIP(literal) > 0 && !egress.allowsAddress(literal)) {
      return void setImmediate(() => callback(new EgressBlocked(host), null));
    }
    return guarded(options, (...[error, socket]) => {
      if (error === null) judgeReached(egress, host, socket, callback);
      else callback(error, null);
    });
  };
  return new undici.Agent({ connect, headersTimeout: 0, bodyTimeout: 0 });
}

function judgeReached(egress: Egress, host: string, socket: Socket, callback: buildConnector.Callback): void {
  const { remoteAddress } = socket;
  if (remoteAddress !== undefined && egress.allowsAddress(remoteAddress)) return callback(null, socket);
  socket.destroy();
  callback(remoteAddress === undefined ? new Error("the connection was closed") : new EgressBlocked(host), null);
}

type Answer = (error: NodeJS.ErrnoException | null, address: string | LookupAddress[], family?: number) => void;

function answer(
  lookup: Lookup,
  host: string,
  options: LookupOptions,
  done: Answer,
  isAllowed: (address: LookupAddress) => boolean = () => true,
): void {
  lookup(host, { ...options, all: true }, (error, addresses) => {
    if (error !== null) return done(error, "", 0);
    // One that is not allowed among many spoils all: whoever answers for the name is not to be trusted.
    if (!addresses.every(isAllowed)) return done(new EgressBlocked(canonicalHost(host) ?? host), "", 0);
    const [first] = addresses;
    if (options.all === true) done(null, addresses);
    else if (first === undefined) done(new Error(`${host} has no address`), "", 0);
    else done(null, first.address, first.family);
  });
}
