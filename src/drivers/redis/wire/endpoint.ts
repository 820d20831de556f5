/** Where a Redis is, and as whom to speak to it. */
export interface Endpoint {
  readonly host: string;
  readonly port: number;
  /** Of its socket in the file system, which is then used in place of both. */
  readonly path?: string;
  readonly isSecure: boolean;
  readonly user?: string;
  readonly password?: string;
  /** The number of its database. */
  readonly database: number;
}

const USUAL_PORT = 6379;

/** Of `redis://` or `rediss://`, or of `unix://` with the path of a socket and `?db=`. Throws a TypeError if it is none of them. */
export function endpointOf(url: string): Endpoint {
  // Whoever gives a user has to give a host as well, says the standard; the socket has none.
  const parsed = new URL(url.replace(/^(unix:\/\/[^/]*)\//, "$1localhost/"));
  const { protocol, hostname, port, username, password, pathname, searchParams } = parsed;
  const isPath = protocol === "unix:";
  if (!isPath && protocol !== "redis:" && protocol !== "rediss:")
    throw new TypeError(`${protocol} is not redis:, rediss: or unix:`);
  const number = isPath ? (searchParams.get("db") ?? "") : pathname.slice(1);
  const database = Number(number);
  if (!Number.isInteger(database)) throw new TypeError(`${number} is not the number of a database`);
  return {
    // An IPv6 address stands in brackets.
    host: hostname.replace(/^\[(.*)\]$/, "$1") || "localhost",
    port: port === "" ? USUAL_PORT : Number(port),
    ...(isPath && { path: decodeURIComponent(pathname) }),
    isSecure: protocol === "rediss:",
    ...(username !== "" && { user: decodeURIComponent(username) }),
    ...(password !== "" && { password: decodeURIComponent(password) }),
    database,
  };
}
