export type Request = readonly string[];

/** What goes to the socket at once, and how. */
export interface Piece {
  readonly text: string;
  readonly encoding: "latin1" | "utf8";
}

/** Longer texts are laid where the collector is slow to look. */
const PIECE_CHARS = 64 * 1024;

/**
 * Writes requests as the protocol has them. Every argument has its length in bytes in front of it, and to ask for that lays each text out
 * by itself before it is copied into the whole. Nearly all that we send has as many bytes as characters: so that is what is
 * written, and then the whole is asked once whether it is true.
 */
export class RequestText {
  /** Whether it was true the last time. */
  #wasPlain = true;

  pieces(requests: readonly Request[]): readonly Piece[] {
    const pieces: Piece[] = [];
    let from = 0;
    let chars = 0;
    for (let i = 0; i < requests.length; i++) {
      const request = requests[i]!;
      for (let j = 0; j < request.length; j++) chars += request[j]!.length;
      if (chars < PIECE_CHARS && i < requests.length - 1) continue;
      pieces.push(this.#piece(requests.slice(from, i + 1)));
      from = i + 1;
      chars = 0;
    }
    return pieces;
  }

  #piece(requests: readonly Request[]): Piece {
    if (this.#wasPlain) {
      const text = textOf(requests, lengthOf);
      // A character beyond ASCII is two bytes or more.
      if (Buffer.byteLength(text) === text.length) return { text, encoding: "latin1" };
    }
    const text = textOf(requests, bytesOf);
    this.#wasPlain = Buffer.byteLength(text) === text.length;
    return { text, encoding: this.#wasPlain ? "latin1" : "utf8" };
  }
}

function lengthOf(text: string): number {
  return text.length;
}

function bytesOf(text: string): number {
  return Buffer.byteLength(text);
}

function textOf(requests: readonly Request[], measure: (text: string) => number): string {
  let text = "";
  for (let i = 0; i < requests.length; i++) {
    const request = requests[i]!;
    text += `*${request.length}\r\n`;
    for (let j = 0; j < request.length; j++) {
      const argument = request[j]!;
      text += `$${measure(argument)}\r\n${argument}\r\n`;
    }
  }
  return text;
}
