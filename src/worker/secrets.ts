const PREFIX = "MILLRACE_SECRET_";

/** The variables of a process without its secrets: a handler is given those that its node's config names. */
export function withoutSecrets(
  env: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, string | undefined>> {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith(PREFIX)));
}
