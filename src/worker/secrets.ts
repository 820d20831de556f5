const PREFIX = "MILLRACE_SECRET_";

/** Where `{{ secrets.NAME }}` comes from: the variable MILLRACE_SECRET_NAME of the worker's own process. */
export function secretsOf(env: Readonly<Record<string, string | undefined>>): (name: string) => string | undefined {
  return (name) => (Object.hasOwn(env, PREFIX + name) ? env[PREFIX + name] : undefined);
}

/** The variables of a process without its secrets: a handler is given those that its node's config names. */
export function withoutSecrets(
  env: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, string | undefined>> {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith(PREFIX)));
}
