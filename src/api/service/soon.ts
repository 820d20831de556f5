/** What is there already, or comes later. A promise for what nobody waits for costs more than most of what is asked. */
export type Soon<Value> = Value | Promise<Value>;

/** Goes on with it, at once if it is there. What `goOn` throws is thrown at once then, too. */
export function soon<Value, Result>(value: Soon<Value>, goOn: (value: Value) => Soon<Result>): Soon<Result> {
  return value instanceof Promise ? value.then(goOn) : goOn(value);
}
