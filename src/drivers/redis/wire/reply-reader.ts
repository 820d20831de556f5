/** What the server answers instead of an answer. */
export class ErrorReply extends Error {
  override readonly name = "ErrorReply";
}

export type Reply = string | number | null | ErrorReply | readonly Reply[];

/** What comes is not the protocol: whoever speaks there is no Redis. */
export class ProtocolError extends Error {
  override readonly name = "ProtocolError";
}

interface OpenArray {
  readonly items: Reply[];
  readonly length: number;
}

const [CR, LF, MINUS, ZERO, NINE] = [13, 10, 45, 48, 57];
const [ARRAY, BULK, ERROR, INTEGER, SIMPLE] = [...Buffer.from("*$-:+")] as [number, number, number, number, number];

/** Far beyond what a command of ours is answered with; a length beyond it is the middle of something else. */
const MOST_BYTES = 512 * 1024 * 1024;
const MOST_ITEMS = 16 * 1024 * 1024;

/** Said of every command of a transaction: not made anew for each. */
const QUEUED = "QUEUED";

const INCOMPLETE = -1;

/** Reads replies (RESP2) out of what comes in pieces of any size. Nothing that was read once is read again. */
export class ReplyReader {
  readonly #hear: (reply: Reply) => void;
  /** Arrays that are not complete yet, the outermost first. */
  readonly #open: OpenArray[] = [];
  /** What has come of something that is not there whole, and how much must be there before it is worth a look. */
  #waiting: Buffer[] = [];
  #size = 0;
  #needed = 0;
  /** Where the number ends that was read last. */
  #behind = 0;

  constructor(hear: (reply: Reply) => void) {
    this.#hear = hear;
  }

  /** @throws ProtocolError */
  read(chunk: Buffer): void {
    let data = chunk;
    if (this.#waiting.length > 0) {
      this.#waiting.push(chunk);
      this.#size += chunk.length;
      if (this.#size < this.#needed) return;
      data = Buffer.concat(this.#waiting, this.#size);
      this.#waiting = [];
    }
    let at = 0;
    while (at < data.length) {
      this.#needed = 0;
      const next = this.#piece(data, at);
      if (next === INCOMPLETE) {
        this.#waiting = [at === 0 ? data : data.subarray(at)];
        this.#size = data.length - at;
        return;
      }
      at = next;
    }
  }

  /** Reads one value, or how long one is; answers where the next begins. */
  #piece(data: Buffer, at: number): number {
    switch (data[at]!) {
      case BULK:
        return this.#bulk(data, at);
      case INTEGER: {
        const value = this.#number(data, at + 1);
        if (this.#behind === INCOMPLETE) return INCOMPLETE;
        this.#add(value);
        return this.#behind;
      }
      case ARRAY:
        return this.#array(data, at);
      case SIMPLE:
      case ERROR:
        return this.#line(data, at);
      default:
        throw new ProtocolError("what answers there does not speak the protocol of Redis");
    }
  }

  #bulk(data: Buffer, at: number): number {
    const length = this.#number(data, at + 1);
    const from = this.#behind;
    if (from === INCOMPLETE) return INCOMPLETE;
    if (length < 0) {
      this.#add(null);
      return from;
    }
    if (length > MOST_BYTES) throw new ProtocolError(`an answer of ${length} bytes`);
    const end = from + length;
    if (data.length < end + 2) {
      this.#needed = end + 2 - at;
      return INCOMPLETE;
    }
    if (data[end] !== CR || data[end + 1] !== LF) throw new ProtocolError("an answer is longer than it says");
    this.#add(data.toString("utf8", from, end));
    return end + 2;
  }

  #array(data: Buffer, at: number): number {
    const length = this.#number(data, at + 1);
    if (this.#behind === INCOMPLETE) return INCOMPLETE;
    if (length > MOST_ITEMS) throw new ProtocolError(`an answer of ${length} parts`);
    if (length < 0) this.#add(null);
    else if (length === 0) this.#add([]);
    else this.#open.push({ items: [], length });
    return this.#behind;
  }

  #line(data: Buffer, at: number): number {
    const end = data.indexOf(CR, at);
    if (end === -1 || end + 1 >= data.length) return INCOMPLETE;
    // "+QUEUED", which is told from all that begins so by how long it is.
    const isQueued = data[at] === SIMPLE && end - at === 7 && data[at + 1] === 81;
    const text = isQueued ? QUEUED : data.toString("utf8", at + 1, end);
    this.#add(data[at] === ERROR ? new ErrorReply(text) : text);
    return end + 2;
  }

  /** A number and the end of its line; where that ends is noted in `#behind`. */
  #number(data: Buffer, from: number): number {
    const isNegative = data[from] === MINUS;
    let at = isNegative ? from + 1 : from;
    let value = 0;
    for (; at < data.length; at++) {
      const digit = data[at]!;
      if (digit === CR) {
        this.#behind = at + 1 < data.length ? at + 2 : INCOMPLETE;
        return isNegative ? -value : value;
      }
      if (digit < ZERO || digit > NINE)
        throw new ProtocolError("an answer has something else where a number has to be");
      value = value * 10 + (digit - ZERO);
    }
    this.#behind = INCOMPLETE;
    return 0;
  }

  #add(value: Reply): void {
    let whole = value;
    for (;;) {
      const open = this.#open.at(-1);
      if (open === undefined) return this.#hear(whole);
      open.items.push(whole);
      if (open.items.length < open.length) return;
      this.#open.pop();
      whole = open.items;
    }
  }
}
