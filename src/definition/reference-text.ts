const WORD = /^[A-Za-z0-9_][A-Za-z0-9_-]*$/;

/** A reference to the output of a node as one would write it: `fetch.body[0]`, `nodes["a.b"]["some key"]`. */
export function referenceText(id: string, path: readonly (string | number)[]): string {
  const start = WORD.test(id) ? id : `nodes[${JSON.stringify(id)}]`;
  // A first step of that name means the whole output.
  const whole = path[0] === "output" ? ".output" : "";
  return start + whole + path.map(stepText).join("");
}

function stepText(step: string | number): string {
  if (typeof step === "number") return `[${step}]`;
  return WORD.test(step) ? `.${step}` : `[${JSON.stringify(step)}]`;
}
