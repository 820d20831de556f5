/** JSON pointers (RFC 6901): "/nodes/3/config/url". The empty string is the whole document. */

export function pointerStep(step: string | number): string {
  if (typeof step === "number") return `/${step}`;
  return step.includes("~") || step.includes("/") ? `/${step.replaceAll("~", "~0").replaceAll("/", "~1")}` : `/${step}`;
}

export function pointerTo(steps: Iterable<string | number>): string {
  let pointer = "";
  for (const step of steps) pointer += pointerStep(step);
  return pointer;
}

export function pointerSteps(pointer: string): string[] {
  if (pointer === "") return [];
  return pointer
    .slice(1)
    .split("/")
    .map((step) => (step.includes("~") ? step.replaceAll("~1", "/").replaceAll("~0", "~") : step));
}
