import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { canonicalHost, egressEntryOf } from "../settings/egress-entry.ts";

type Address = ipaddr.IPv4 | ipaddr.IPv6;

export interface EgressOptions {
  /** Hosts, `host:port` pairs and CIDR blocks that may be called although they are not public. */
  readonly allow?: readonly string[];
  /** Whether this machine may be called: in development, in a run from the command line, in an embedded engine. */
  readonly loopback?: boolean;
}

/** An entry of the list that is neither a host, a host with a port, nor a CIDR block. */
export class EgressEntryInvalid extends Error {
  override readonly name = "EgressEntryInvalid";

  constructor(entry: string) {
    super(
      `MILLRACE_EGRESS_ALLOW: ${JSON.stringify(entry)} is not a host, a host:port or a CIDR block such as 10.0.0.0/8`,
    );
  }
}

/** Public, but answers with the secrets of the virtual machine that asks: Azure's. The others' are link-local. */
const METADATA = ["168.63.129.16"];

/**
 * Whom a workflow may make us call. Its author may be a stranger, and the worker stands inside the network: only public
 * addresses are open, and what the operator lists. Names are judged by what they resolve to, when the connection is made
 * (see `openAgent`), so that a name which means something else by then is of no use.
 */
export class Egress {
  readonly #hosts = new Set<string>();
  readonly #blocks: (readonly [Address, number])[] = [];
  readonly #loopback: boolean;

  constructor({ allow = [], loopback = false }: EgressOptions = {}) {
    this.#loopback = loopback;
    for (const entry of allow) this.#add(entry);
  }

  /** Whether the operator has listed this very host: then it may lead anywhere. */
  allowsHost(host: string, port: number): boolean {
    const name = canonicalHost(host) ?? host;
    return this.#hosts.has(name) || this.#hosts.has(`${name}:${port}`);
  }

  allowsAddress(text: string): boolean {
    if (!ipaddr.isValid(text)) return false;
    const address = meant(ipaddr.parse(text));
    if (this.#blocks.some(([block, bits]) => block.kind() === address.kind() && address.match(block, bits)))
      return true;
    if (METADATA.includes(address.toString())) return false;
    const range = address.range();
    // Of IPv6 only what was ever given out as public: much of the rest wraps an IPv4 address in some way.
    return (this.#loopback && range === "loopback") || (range === "unicast" && isGivenOut(address));
  }

  #add(text: string): void {
    const entry = egressEntryOf(text);
    if (entry === undefined) throw new EgressEntryInvalid(text);
    if ("bits" in entry) {
      this.#blocks.push([ipaddr.parse(entry.address), entry.bits]);
      return;
    }
    const { host, port } = entry;
    this.#hosts.add(port === undefined ? host : `${host}:${port}`);
    if (port === undefined && isIP(host) > 0) {
      this.#blocks.push([meant(ipaddr.parse(host)), isIP(host) === 4 ? 32 : 128]);
    }
  }
}

/** The IPv4 address that an IPv6 one stands for: mapped, or translated at the edge of a network without IPv4. */
function meant(address: Address): Address {
  if (address.kind() === "ipv4") return address;
  const ipv6 = address as ipaddr.IPv6;
  if (ipv6.isIPv4MappedAddress()) return ipv6.toIPv4Address();
  const bytes = ipv6.toByteArray();
  return ipv6.match(NAT64, 96) ? ipaddr.fromByteArray(bytes.slice(12)) : ipv6;
}

const NAT64 = ipaddr.IPv6.parse("64:ff9b::");
const GIVEN_OUT = ipaddr.IPv6.parse("2000::");

function isGivenOut(address: Address): boolean {
  return address.kind() === "ipv4" || (address as ipaddr.IPv6).match(GIVEN_OUT, 3);
}
