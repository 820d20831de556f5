import { isIP } from "node:net";

/** What one entry of `MILLRACE_EGRESS_ALLOW` opens: a host, one port of it, or a CIDR block. */
export type EgressEntry =
  | { readonly host: string; readonly port: number | undefined }
  | { readonly address: string; readonly bits: number };

/** Undefined if it is none of them. Whoever reads the settings and whoever opens by them understand it here, alike. */
export function egressEntryOf(entry: string): EgressEntry | undefined {
  if (entry.includes("/")) {
    const [, address = "", length = ""] = /^([0-9a-f:.]+)\/(\d{1,3})$/i.exec(entry) ?? [];
    const bits = Number(length);
    const version = isIP(address);
    return version === 0 || bits > (version === 4 ? 32 : 128) ? undefined : { address, bits };
  }
  const [, name = "", digits] = /^(\[[^\]]+\]|[^:]*|[0-9a-f:.]+)(?::(\d{1,5}))?$/i.exec(entry) ?? [];
  const host = canonicalHost(name);
  const port = digits === undefined ? undefined : Number(digits);
  if (host === undefined || (port !== undefined && (port < 1 || port > 65_535))) return undefined;
  return { host, port };
}

/** As a URL has it: lower case, Punycode, `0x7f.1` written out; without brackets and the dot at the end. */
export function canonicalHost(host: string): string | undefined {
  const isBareIpv6 = isIP(host) === 6;
  const url = URL.parse(`http://${isBareIpv6 ? `[${host}]` : host}/`);
  if (url === null || url.hostname === "" || url.pathname !== "/" || url.username !== "" || url.port !== "") return;
  return withoutBrackets(url.hostname).replace(/\.$/, "");
}

export function withoutBrackets(hostname: string): string {
  return hostname.startsWith("[") ? hostname.slice(1, -1) : hostname;
}
