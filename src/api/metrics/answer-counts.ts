/** Where the counts of answers go. */
interface Told {
  counted(labels: { readonly method: string; readonly route: string; readonly status: string }, count: number): void;
  took(labels: { readonly method: string; readonly route: string }, seconds: number): void;
}

/** Times that are kept until they are told. */
const MAX_KEPT = 256;

/**
 * Counts of answers, told by many at a time: to find a counter by its labels costs more than to count, and there are two to be
 * found for every request.
 */
export class AnswerCounts {
  readonly #told: Told;
  readonly #byRoute = new Map<string, Map<string, OfRoute>>();

  constructor(told: Told) {
    this.#told = told;
  }

  add(method: string, route: string, status: number, seconds: number): void {
    let byMethod = this.#byRoute.get(route);
    if (byMethod === undefined) this.#byRoute.set(route, (byMethod = new Map()));
    let counts = byMethod.get(method);
    if (counts === undefined) byMethod.set(method, (counts = new OfRoute(method, route)));
    if (counts.add(status, seconds)) counts.tell(this.#told);
  }

  /** To be called before anybody is shown how many there were. */
  tellAll(): void {
    for (const byMethod of this.#byRoute.values()) for (const counts of byMethod.values()) counts.tell(this.#told);
  }
}

class OfRoute {
  readonly #method: string;
  readonly #route: string;
  readonly #byStatus = new Map<number, number>();
  readonly #seconds = new Float64Array(MAX_KEPT);
  #kept = 0;

  constructor(method: string, route: string) {
    this.#method = method;
    this.#route = route;
  }

  /** Answers whether there is no room for more. */
  add(status: number, seconds: number): boolean {
    this.#byStatus.set(status, (this.#byStatus.get(status) ?? 0) + 1);
    this.#seconds[this.#kept++] = seconds;
    return this.#kept === MAX_KEPT;
  }

  tell(told: Told): void {
    const labels = { method: this.#method, route: this.#route };
    for (const [status, count] of this.#byStatus) told.counted({ ...labels, status: String(status) }, count);
    this.#byStatus.clear();
    for (let i = 0; i < this.#kept; i++) told.took(labels, this.#seconds[i]!);
    this.#kept = 0;
  }
}
