import { createRequire } from "node:module";
import { failed } from "./failed.ts";

/**
 * Packages that only some handlers need, and that are heavy: whoever uses those installs them. They are loaded at the
 * first call. Each handler says by a type of its own what it calls of them: their types are not there without them.
 */
export async function loadPackage(handler: string, name: string, others: readonly string[] = []): Promise<unknown> {
  try {
    return await import(name);
  } catch (error) {
    throw isMissing(error, name) ? failed("PACKAGE_MISSING", { handler, packages: [name, ...others] }) : error;
  }
}

/** Where a package keeps its files. */
export function packageFile(handler: string, name: string, file: string): string {
  try {
    return createRequire(import.meta.url).resolve(`${name}/${file}`);
  } catch (error) {
    throw isMissing(error, name) ? failed("PACKAGE_MISSING", { handler, packages: [name] }) : error;
  }
}

function isMissing(error: unknown, name: string): boolean {
  const { code, message } = error as { readonly code?: unknown; readonly message?: unknown };
  const isNotFound = code === "ERR_MODULE_NOT_FOUND" || code === "MODULE_NOT_FOUND";
  // Something that the package itself lacks is another trouble.
  return isNotFound && String(message).includes(`'${name}`);
}
