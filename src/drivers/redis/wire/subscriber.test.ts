import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Host } from "../../../host/host.ts";
import { nodeHost } from "../../../host/node-host.ts";
import { Subscriber } from "./subscriber.ts";

/** In a hurry: a second takes 50 ms. */
const host: Host = { ...nodeHost, sleep: (ms, signal) => nodeHost.sleep(ms / 20, signal) };

describe("who listens to what others publish", () => {
  let server: Server;
  let subscriber: Subscriber;
  let connections = 0;
  /** What the other side does with a connection, and with what it hears on it. */
  let greet: (socket: Socket) => void;
  let answer: (socket: Socket, text: string) => void;

  beforeEach(async () => {
    connections = 0;
    greet = () => {};
    answer = () => {};
    server = createServer((socket) => {
      connections++;
      socket.on("error", () => {});
      socket.on("data", (chunk) => answer(socket, chunk.toString()));
      greet(socket);
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as { readonly port: number };
    subscriber = new Subscriber({ host: "127.0.0.1", port, isSecure: false, database: 0 }, host);
  });
  afterEach(() => {
    subscriber.close();
    server.close();
  });

  /** Confirms what is asked for, and says something at once. */
  function publish(socket: Socket, text: string): void {
    for (const [, channel] of text.matchAll(/SUBSCRIBE\r\n\$\d+\r\n(\w+)\r\n/g)) {
      const name = `$${channel!.length}\r\n${channel}\r\n`;
      socket.write(`*3\r\n$9\r\nsubscribe\r\n${name}:1\r\n*3\r\n$7\r\nmessage\r\n${name}$2\r\nhi\r\n`);
    }
  }

  test("however many channels there are, a server that takes nobody is asked once in a pause", async () => {
    greet = (socket) => void socket.destroy();
    for (let i = 0; i < 30; i++) {
      await subscriber.subscribe(`c${i}`, () => {});
      await nodeHost.sleep(5);
    }
    connections = 0;
    await nodeHost.sleep(500);
    expect(connections).toBeLessThanOrEqual(11);
    const heard = new Set<number>();
    greet = () => {};
    answer = publish;
    for (let i = 0; i < 30; i++) void subscriber.subscribe(`c${i}`, () => heard.add(i));
    await expect.poll(() => heard.size).toBe(30);
  });

  test("a server that says nothing is left for one that does", async () => {
    await subscriber.subscribe("c", () => {});
    answer = (socket, text) => connections > 1 && publish(socket, text);
    const { promise, resolve } = Promise.withResolvers<string>();
    await subscriber.subscribe("c", resolve);
    expect(await promise).toBe("hi");
  });
});
