import { MillraceError } from "../../errors/millrace-error.ts";

/** Whether an address that a server listens on can only be reached from this machine. */
export function isLoopbackAddress(host: string): boolean {
  return isLoopbackName(host.replace(/^\[|\]$/g, ""));
}

/** Names under which browsers find this machine and nothing else. */
function isLoopbackName(name: string): boolean {
  const plain = name.toLowerCase();
  return plain === "localhost" || plain.endsWith(".localhost") || plain === "::1" || /^127(\.\d{1,3}){3}$/.test(plain);
}

/**
 * Without keys, whoever gets here may do everything. So a page on the web must not get here: neither under a name of its
 * own that leads to this machine (DNS rebinding), nor by a form or script that sends to `localhost`.
 */
export function checkLocal(host: string | undefined, origin: string | undefined): void {
  if (host === undefined || host !== lastLocal) {
    const name = hostName(host ?? "");
    if (name === undefined || !isLoopbackName(name)) {
      const reason = "Without keys, the Host must be localhost or a loopback address";
      throw new MillraceError("FORBIDDEN", { reason });
    }
    lastLocal = host;
  }
  checkOrigin(host, origin);
}

/** The last that was found good: nearly all requests name the same. */
let lastLocal: string | undefined;

/** Whatever a page of another origin sends comes from that page, not from its reader. */
export function checkOrigin(host: string | undefined, origin: string | undefined): void {
  if (origin === undefined) return;
  const own = origin.replace(/^https?:\/\//i, "");
  if (own === origin || own.toLowerCase() !== host?.toLowerCase()) {
    throw new MillraceError("FORBIDDEN", { reason: "Pages of another origin may not call this server" });
  }
}

/** `name`, `name:port`, `[::1]` or `[::1]:port`. */
function hostName(host: string): string | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]/\\@\s]+))(?::\d{1,5})?$/.exec(host);
  return match?.[1] ?? match?.[2];
}
