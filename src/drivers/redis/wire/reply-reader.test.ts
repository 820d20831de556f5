import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ErrorReply, ProtocolError, type Reply, ReplyReader } from "./reply-reader.ts";

/** As a server writes it. */
function written(reply: Reply): string {
  if (reply === null) return "$-1\r\n";
  if (typeof reply === "number") return `:${reply}\r\n`;
  if (reply instanceof ErrorReply) return `-${reply.message}\r\n`;
  if (typeof reply === "string") return `$${Buffer.byteLength(reply)}\r\n${reply}\r\n`;
  return `*${reply.length}\r\n${reply.map(written).join("")}`;
}

function readIn(pieces: readonly Buffer[]): readonly Reply[] {
  const heard: Reply[] = [];
  const reader = new ReplyReader((reply) => heard.push(reply));
  for (const piece of pieces) reader.read(piece);
  return heard;
}

const cases: readonly (readonly [text: string, read: readonly Reply[]])[] = [
  ["+OK\r\n", ["OK"]],
  ["+QUEUED\r\n+QUITTER\r\n+Q\r\n+\r\n", ["QUEUED", "QUITTER", "Q", ""]],
  ["-ERR no\r\n", [new ErrorReply("ERR no")]],
  [":0\r\n:-12\r\n:9007199254740991\r\n", [0, -12, 9007199254740991]],
  ["$0\r\n\r\n$-1\r\n$2\r\n\r\n\r\n", ["", null, "\r\n"]],
  ["*0\r\n*-1\r\n", [[], null]],
  ["*3\r\n*1\r\n:1\r\n*0\r\n$3\r\nä!\r\n+OK\r\n", [[[1], [], "ä!"], "OK"]],
  ["*2\r\n-WRONGTYPE x\r\n*-1\r\n", [[new ErrorReply("WRONGTYPE x"), null]]],
];

describe("replies", () => {
  test.each(cases)("%j is read, wherever it is cut in two", (text, expected) => {
    const bytes = Buffer.from(text);
    for (let cut = 0; cut <= bytes.length; cut++) {
      expect(readIn([bytes.subarray(0, cut), bytes.subarray(cut)])).toEqual(expected);
    }
  });

  const leaf: fc.Arbitrary<Reply> = fc.oneof(
    fc.string({ unit: "grapheme", maxLength: 40 }),
    fc.integer(),
    fc.constant(null),
    fc.constant(new ErrorReply("ERR of some kind")),
  );
  const { reply } = fc.letrec<{ reply: Reply }>((tie) => ({
    reply: fc.oneof({ maxDepth: 5 }, leaf, fc.array(tie("reply"), { maxLength: 6 })),
  }));

  test("what a server has written is read in any pieces", () => {
    const cuts = fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1 });
    fc.assert(
      fc.property(fc.array(reply, { maxLength: 8 }), cuts, (replies, sizes) => {
        const bytes = Buffer.from(replies.map(written).join(""));
        const pieces: Buffer[] = [];
        for (let at = 0, i = 0; at < bytes.length; i++)
          pieces.push(bytes.subarray(at, (at += sizes[i % sizes.length]!)));
        expect(readIn(pieces)).toEqual(replies);
      }),
    );
  });

  test("a long text in many pieces is one text", () => {
    const text = "long ".repeat(100_000);
    const bytes = Buffer.from(written([text, 1]));
    const pieces = Array.from({ length: Math.ceil(bytes.length / 1000) }, (_, i) =>
      bytes.subarray(i * 1000, i * 1000 + 1000),
    );
    expect(readIn(pieces)).toEqual([[text, 1]]);
  });

  test.each([
    "HTTP/1.1 400 Bad Request\r\n",
    "$12x\r\n",
    "$3\r\nabcd\r\n",
    "*99999999999\r\n",
    "$99999999999\r\n",
    ":1.5\r\n",
    "%1\r\n+a\r\n+b\r\n",
  ])("%j is nothing that a Redis says", (text) => {
    expect(() => readIn([Buffer.from(text)])).toThrow(ProtocolError);
  });
});
