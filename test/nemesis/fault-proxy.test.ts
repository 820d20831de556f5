import { once } from "node:events";
import { createServer, connect, type AddressInfo, type Server, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FaultProxy } from "./fault-proxy.ts";

/** Long enough for a message to arrive that is not kept, on a busy machine. */
const SOON_MS = 300;

describe("the fault proxy", () => {
  let server: Server;
  let proxy: FaultProxy;
  let port: number;
  /** Everything the server was asked. */
  let asked: string;
  const open: Socket[] = [];

  beforeEach(async () => {
    asked = "";
    server = createServer((socket) => {
      open.push(socket);
      socket.on("error", () => undefined);
      socket.on("data", (bytes) => {
        asked += bytes.toString();
        socket.write(bytes.toString().toUpperCase());
      });
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    proxy = new FaultProxy({ host: "127.0.0.1", port: (server.address() as AddressInfo).port });
    port = await proxy.listen();
  });

  afterEach(async () => {
    for (const socket of open.splice(0)) socket.destroy();
    await proxy.close();
    server.close();
  });

  async function dial(): Promise<Socket & { heard: string; isOver: boolean }> {
    const socket = Object.assign(connect(port, "127.0.0.1"), { heard: "", isOver: false });
    open.push(socket);
    socket.on("error", () => undefined);
    socket.on("close", () => (socket.isOver = true));
    socket.on("data", (bytes) => (socket.heard += bytes.toString()));
    await once(socket, "connect");
    return socket;
  }

  test("passes what is said on, in order, both ways", async () => {
    const socket = await dial();
    for (const letter of "abcdef") socket.write(letter);
    await expect.poll(() => socket.heard).toBe("ABCDEF");
  });

  test("delays each piece", async () => {
    const socket = await dial();
    proxy.apply({ kind: "delay", ms: 200 });
    const sentAtMs = performance.now();
    socket.write("a");
    await expect.poll(() => socket.heard).toBe("A");
    expect(performance.now() - sentAtMs).toBeGreaterThan(390);
  });

  test("keeps what is said while it holds, and delivers all of it afterwards", async () => {
    const socket = await dial();
    proxy.apply({ kind: "hold", direction: "both" });
    socket.write("late");
    await sleep(SOON_MS);
    expect(asked).toBe("");
    proxy.heal();
    await expect.poll(() => socket.heard).toBe("LATE");
  });

  test("holds one direction only if it is told to", async () => {
    const socket = await dial();
    proxy.apply({ kind: "hold", direction: "down" });
    socket.write("question");
    await expect.poll(() => asked).toBe("question");
    await sleep(SOON_MS);
    expect(socket.heard).toBe("");
    proxy.heal();
    await expect.poll(() => socket.heard).toBe("QUESTION");
  });

  test("a piece that is held arrives even if its sender has gone meanwhile", async () => {
    const socket = await dial();
    proxy.apply({ kind: "hold", direction: "both" });
    socket.write("last words");
    await sleep(SOON_MS);
    socket.destroy();
    await sleep(SOON_MS);
    proxy.heal();
    await expect.poll(() => asked).toBe("last words");
  });

  test("takes a connection and swallows what is said on it; afterwards that one breaks", async () => {
    const old = await dial();
    proxy.apply({ kind: "swallow" });
    const fresh = await dial();
    old.write("a");
    fresh.write("b");
    await sleep(SOON_MS);
    expect([asked, old.heard, fresh.heard, old.isOver, fresh.isOver]).toEqual(["", "", "", false, false]);
    proxy.heal();
    await expect.poll(() => old.isOver && fresh.isOver).toBe(true);
  });

  test("leaves a connection silent whose bytes were swallowed, if the other side is to have vanished", async () => {
    const old = await dial();
    proxy.apply({ kind: "swallow" });
    old.write("a");
    await sleep(SOON_MS);
    proxy.heal("leave");
    const fresh = await dial();
    old.write("b");
    fresh.write("c");
    await expect.poll(() => fresh.heard).toBe("C");
    await sleep(SOON_MS);
    expect([asked, old.heard, old.isOver]).toEqual(["c", "", false]);
  });

  test("swallows replies, while what is asked arrives", async () => {
    const socket = await dial();
    proxy.apply({ kind: "swallowReplies" });
    socket.write("commit");
    await expect.poll(() => asked).toBe("commit");
    await sleep(SOON_MS);
    expect(socket.heard).toBe("");
    proxy.heal();
    await expect.poll(() => socket.isOver).toBe(true);
    expect(socket.heard).toBe("");
  });

  test("throttles", async () => {
    const socket = await dial();
    proxy.apply({ kind: "throttle", bytesPerSecond: 20 });
    const sentAtMs = performance.now();
    socket.write("0123456789");
    await expect.poll(() => asked).toBe("0123456789");
    socket.write("x");
    await expect.poll(() => asked).toBe("0123456789x");
    expect(performance.now() - sentAtMs).toBeGreaterThan(490);
  });

  test("breaks every connection and refuses new ones", async () => {
    const socket = await dial();
    proxy.apply({ kind: "refuse" });
    await expect.poll(() => socket.isOver).toBe(true);
    const refused = connect(port, "127.0.0.1");
    refused.on("error", () => undefined);
    await new Promise((resolve) => refused.on("close", resolve));
    proxy.heal();
    const fresh = await dial();
    fresh.write("a");
    await expect.poll(() => fresh.heard).toBe("A");
  });

  test("cuts what there is, and takes new connections at once", async () => {
    const socket = await dial();
    proxy.cut();
    await expect.poll(() => socket.isOver).toBe(true);
    const fresh = await dial();
    fresh.write("a");
    await expect.poll(() => fresh.heard).toBe("A");
    expect(proxy.connections).toBe(1);
  });
});
