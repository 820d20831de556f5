/** Where a Redis is, and as whom to speak to it. */
export interface Endpoint {
  readonly host: string;
  readonly port: number;
  readonly isSecure: boolean;
  readonly user?: string;
  readonly password?: string;
  /** The number of its database. */
  readonly database: number;
}

const USUAL_PORT = 6379;

/** Of `redis://` or `rediss://`. Throws a TypeError if it is neither. */
export function endpointOf(url: string): Endpoint {
  const { protocol, hostname, port, username, password, pathname } = new URL(url);
  if (protocol !== "redis:" && protocol !== "rediss:") throw new TypeError(`${protocol} is not redis: or rediss:`);
  const database = Number(pathname.slice(1));
  if (!Number.isInteger(database)) throw new TypeError(`${pathname.slice(1)} is not the number of a database`);
  return {
    // An IPv6 address stands in brackets.
    host: hostname.replace(/^\[(.*)\]$/, "$1") || "localhost",
    port: port === "" ? USUAL_PORT : Number(port),
    isSecure: protocol === "rediss:",
    ...(username !== "" && { user: decodeURIComponent(username) }),
    ...(password !== "" && { password: decodeURIComponent(password) }),
    database,
  };
}
