import { MillraceError } from "../../errors/millrace-error.ts";

export const PERMISSIONS = [
  "read",
  "definitions",
  "submit",
  "start",
  "operate",
  "edit",
  "reviews",
  "decide",
  "work",
] as const;

/** What a route needs; `open` needs nothing. */
export type Permission = "open" | (typeof PERMISSIONS)[number];

export const ROLES = ["viewer", "author", "operator", "reviewer", "worker", "admin"] as const;
export type Role = (typeof ROLES)[number];

/**
 * The table of docs/operations.md, which a test compares. `definitions` and `reviews` are reading too, of what an author
 * or a reviewer has to see.
 */
const GRANTS: Readonly<Record<Role, readonly Permission[]>> = {
  viewer: ["read", "definitions", "reviews"],
  author: ["definitions", "submit"],
  operator: ["read", "definitions", "reviews", "start", "operate"],
  reviewer: ["reviews", "decide"],
  worker: ["work"],
  admin: ["read", "definitions", "submit", "start", "operate", "edit", "reviews", "decide", "work"],
};

export function isRole(name: string): name is Role {
  return (ROLES as readonly string[]).includes(name);
}

export function permits(roles: readonly Role[], permission: Permission): boolean {
  if (permission === "open") return true;
  // Asked twice for every request: without a function made for it.
  for (const role of roles) if (GRANTS[role].includes(permission)) return true;
  return false;
}

/** Throws unless one of the roles may do this. */
export function requirePermission(roles: readonly Role[], permission: Permission): void {
  if (permits(roles, permission)) return;
  const able = ROLES.filter((role) => permits([role], permission)).join(" or ");
  throw new MillraceError("FORBIDDEN", {
    reason: `This key may not do that: it needs the permission "${permission}", which a key with the role ${able} has`,
  });
}
