/** Things by a name, for as long as somebody else has them. */
export class WeakIndex<Value extends object> {
  readonly #refs = new Map<string, WeakRef<Value>>();
  readonly #gone = new FinalizationRegistry<string>((name) => {
    // Another may have come under the same name since.
    if (this.get(name) === undefined) this.#refs.delete(name);
  });

  get(name: string): Value | undefined {
    return this.#refs.get(name)?.deref();
  }

  set(name: string, value: Value): void {
    this.#refs.set(name, new WeakRef(value));
    this.#gone.register(value, name);
  }
}
