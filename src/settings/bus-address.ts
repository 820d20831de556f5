import { quote } from "../errors/registry.ts";
import type { Settings } from "./declarations.ts";

/** Where a bus is, and how to speak to it. */
export interface BusAddress {
  /** Each `host:port`. Whoever answers names the others. */
  readonly brokers: readonly string[];
  /** In front of the name of every topic and group. */
  readonly prefix: string;
  readonly tls: boolean;
  readonly user?: { readonly name: string; readonly password: string };
}

const FORM = "kafka://HOST:PORT,…/PREFIX, kafkas://… with TLS, or kafka with KAFKA_BROKERS";
const DEFAULT_PREFIX = "millrace";
const DEFAULT_PORT = 9092;
const URL_PARTS = /^(kafkas?):\/\/(?:([^@/]*)@)?([^@/]+)(?:\/([^/]*))?$/;
/** What the name of a topic may have, short enough for what comes behind it. */
const PREFIX = /^[A-Za-z0-9._-]{1,64}$/;
const BROKER = /^(\[[0-9a-fA-F:.]+\]|[^:[\]\s]+)(?::(\d{1,5}))?$/;

/** Reads `MILLRACE_BUS`; undefined if there is none. Brokers of other applications never choose it. */
export function busAddress({ bus, kafkaBrokers }: Settings): BusAddress | { readonly fault: string } | undefined {
  if (bus === undefined) return undefined;
  if (bus === "kafka") {
    if (kafkaBrokers === undefined) return { fault: "MILLRACE_BUS=kafka needs KAFKA_BROKERS, as HOST:PORT,…." };
    return addressOf({ scheme: "kafka", hosts: kafkaBrokers, prefix: DEFAULT_PREFIX, named: "KAFKA_BROKERS" });
  }
  const [, scheme, login, hosts, prefix = ""] = URL_PARTS.exec(bus) ?? [];
  if (scheme === undefined || hosts === undefined)
    return { fault: `MILLRACE_BUS must be ${FORM}, not ${quote(withoutLogin(bus))}.` };
  return addressOf({ scheme, login, hosts, prefix: prefix || DEFAULT_PREFIX, named: "MILLRACE_BUS" });
}

/** As it may be shown. */
export function shownBus({ brokers, prefix, tls }: BusAddress): string {
  return `${tls ? "kafkas" : "kafka"}://${brokers.join(",")}/${prefix}`;
}

function addressOf(written: {
  readonly scheme: string;
  readonly login?: string | undefined;
  readonly hosts: string;
  readonly prefix: string;
  readonly named: string;
}): BusAddress | { readonly fault: string } {
  const { scheme, login, hosts, prefix, named } = written;
  if (!PREFIX.test(prefix))
    return { fault: `The prefix in ${named} must be up to 64 letters, digits, dots, underscores and hyphens.` };
  const brokers: string[] = [];
  for (const word of hosts.split(",").map((one) => one.trim())) {
    const [, host, port = String(DEFAULT_PORT)] = BROKER.exec(word) ?? [];
    if (host === undefined || Number(port) === 0 || Number(port) > 65_535)
      return { fault: `${named} must name brokers as HOST:PORT,…, not ${quote(word)}.` };
    brokers.push(`${host}:${port}`);
  }
  const address = { brokers, prefix, tls: scheme === "kafkas" };
  if (login === undefined || login === "") return address;
  const colon = login.indexOf(":");
  if (colon < 0) return { fault: `${named} has a user without a password: USER:PASSWORD@….` };
  try {
    const user = {
      name: decodeURIComponent(login.slice(0, colon)),
      password: decodeURIComponent(login.slice(colon + 1)),
    };
    return { ...address, user };
  } catch {
    return { fault: `User and password in ${named} must be written as in any URL: % as %25.` };
  }
}

function withoutLogin(url: string): string {
  // Whatever it was meant to be: a password may have slashes and further signs in it that should not be there.
  return url.replace(/\/\/.*@/, "//…@");
}
