import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Endpoint } from "./endpoint.ts";
import { ErrorReply, ProtocolError, type Reply } from "./reply-reader.ts";
import { Wire } from "./wire.ts";

describe("a connection to a Redis", () => {
  let server: Server;
  let endpoint: Endpoint;
  let heard = "";
  /** What the other side does with what it hears. */
  let answer: (socket: Socket, text: string) => void;
  let wires: Wire[] = [];

  beforeEach(async () => {
    heard = "";
    answer = () => {};
    server = createServer((socket) => {
      socket.on("error", () => {});
      socket.on("data", (chunk) => {
        heard += chunk.toString();
        answer(socket, chunk.toString());
      });
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as { readonly port: number };
    endpoint = { host: "127.0.0.1", port, isSecure: false, database: 0 };
  });
  afterEach(() => {
    for (const wire of wires) wire.end();
    wires = [];
    server.close();
  });

  function wireTo(to: Endpoint, hear?: (reply: Reply) => boolean): Wire {
    const wire = new Wire(to, hear);
    wires.push(wire);
    return wire;
  }

  async function connected(hear?: (reply: Reply) => boolean): Promise<Wire> {
    const wire = wireTo(endpoint, hear);
    await wire.connect();
    return wire;
  }

  test("answers are those of the requests, in their order", async () => {
    answer = (socket) => void socket.write("+one\r\n-ERR two\r\n:3\r\n");
    const wire = await connected();
    const all = await Promise.allSettled([wire.send(["A"]), wire.send(["B"]), wire.send(["C"])]);
    expect(all).toEqual([
      { status: "fulfilled", value: "one" },
      { status: "rejected", reason: new ErrorReply("ERR two") },
      { status: "fulfilled", value: 3 },
    ]);
    expect(heard).toBe("*1\r\n$1\r\nA\r\n*1\r\n$1\r\nB\r\n*1\r\n$1\r\nC\r\n");
  });

  const ended = [
    ["+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n:2\r\n", [1, 2]],
    ["+OK\r\n+QUEUED\r\n+QUEUED\r\n*-1\r\n", null],
    ["+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n-WRONGTYPE x\r\n", [1, new ErrorReply("WRONGTYPE x")]],
    ["+OK\r\n+QUEUED\r\n-OOM x\r\n-EXECABORT y\r\n", new ErrorReply("OOM x")],
    ["-NOPERM x\r\n:1\r\n:2\r\n-ERR EXEC without MULTI\r\n", new ErrorReply("NOPERM x")],
  ] as const;
  test.each(ended)("a transaction that is answered %j", async (text, outcome) => {
    answer = (socket, asked) => void socket.write(asked.includes("PING") ? "+PONG\r\n" : text);
    const wire = await connected();
    const transacting = wire.transact([["A"], ["B"]]);
    if (outcome instanceof ErrorReply) await expect(transacting).rejects.toEqual(outcome);
    else expect(await transacting).toEqual(outcome);
    // All of its answers were its own.
    expect(await wire.send(["PING"])).toBe("PONG");
  });

  test("who one is and which database is meant is said first", async () => {
    answer = (socket) => void socket.write("+OK\r\n+OK\r\n");
    const wire = wireTo({ ...endpoint, user: "me", password: "pw", database: 3 });
    await wire.connect();
    expect(heard).toBe("*3\r\n$4\r\nAUTH\r\n$2\r\nme\r\n$2\r\npw\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n");
    expect(wire.isReady).toBe(true);
  });

  test("a server is reached by the path of its socket", async () => {
    const folder = await mkdtemp(join(tmpdir(), "millrace-wire-"));
    const path = join(folder, "redis.sock");
    const local = createServer().listen(path);
    try {
      await once(local, "listening");
      const wire = wireTo({ ...endpoint, port: 1, path });
      await wire.connect();
      expect(wire.isReady).toBe(true);
    } finally {
      local.close();
      await rm(folder, { recursive: true });
    }
  });

  test("a password without a user is that of the default one", async () => {
    answer = (socket) => void socket.write("+OK\r\n");
    await wireTo({ ...endpoint, password: "pw" }).connect();
    expect(heard).toBe("*3\r\n$4\r\nAUTH\r\n$7\r\ndefault\r\n$2\r\npw\r\n");
  });

  test("who is not let in is told why", async () => {
    answer = (socket) => void socket.write("-WRONGPASS invalid\r\n");
    const wire = wireTo({ ...endpoint, password: "wrong" });
    await expect(wire.connect()).rejects.toThrow("WRONGPASS invalid");
    expect(wire.isReady).toBe(false);
  });

  test("where nobody listens there is no connection", async () => {
    server.close();
    await once(server, "close");
    await expect(wireTo(endpoint).connect()).rejects.toMatchObject({ code: "ECONNREFUSED" });
  });

  test("whoever waits when it breaks hears of it, and whoever comes later", async () => {
    answer = (socket) => void socket.destroy();
    const wire = await connected();
    const asked = [wire.send(["A"]), wire.transact([["B"]])];
    for (const one of asked) await expect(one).rejects.toThrow(/closed|ECONNRESET/);
    expect(wire.isReady).toBe(false);
    await expect(wire.send(["C"])).rejects.toThrow(/closed|ECONNRESET/);
    expect(await wire.ended).toBeInstanceOf(Error);
  });

  test.each(["HTTP/1.1 400 Bad Request\r\n", "+OK\r\n+and more than was asked for\r\n"])(
    "one that answers %j is left",
    async (text) => {
      answer = (socket) => void socket.write(text);
      const wire = await connected();
      wire.send(["A"]).catch(() => {});
      const reason = await wire.ended;
      expect(reason instanceof ProtocolError || /nobody has asked/.test(reason.message)).toBe(true);
    },
  );

  test("what is said unasked answers nobody", async () => {
    answer = (socket) => void socket.write("*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\nhi\r\n+OK\r\n");
    const unasked: Reply[] = [];
    const wire = await connected((reply) => Array.isArray(reply) && unasked.push(reply) > 0);
    expect(await wire.send(["A"])).toBe("OK");
    expect(unasked).toEqual([["message", "c", "hi"]]);
  });

  test("ten thousand requests at once are answered one by one", async () => {
    let count = 0;
    answer = (socket, text) => {
      for (const _ of text.matchAll(/\*1\r\n/g)) socket.write(`:${count++}\r\n`);
    };
    const wire = await connected();
    const answers = await Promise.all(Array.from({ length: 10_000 }, () => wire.send<number>(["A"])));
    expect(answers).toEqual(answers.map((_, i) => i));
  });
});
