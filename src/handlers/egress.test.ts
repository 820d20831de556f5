import type { LookupAddress } from "node:dns";
import { describe, expect, test } from "vitest";
import { nodeHost } from "../host/node-host.ts";
import type { Json } from "../json/json.ts";
import { Egress, EgressEntryInvalid } from "./egress.ts";
import type { Lookup } from "./egress-agent.ts";
import { HttpClient } from "./http-client.ts";
import { httpHandler } from "./http.ts";
import { sendJson, serve, testCall } from "./test-server.ts";

const BLOCKED = { code: "EGRESS_BLOCKED", retryable: false };

async function get(url: string, egress: Egress, lookup?: Lookup): Promise<Json> {
  const client = new HttpClient(egress, lookup === undefined ? {} : { lookup });
  return httpHandler(client, nodeHost)(testCall({ url }));
}

/** Names as the network of a test knows them, one answer after the other. */
function network(names: Readonly<Record<string, readonly (readonly string[])[]>>): Lookup {
  const asked = new Map<string, number>();
  return (name, _options, done) => {
    const turn = asked.get(name) ?? 0;
    asked.set(name, turn + 1);
    const answers = names[name] ?? [];
    const addresses = (answers[Math.min(turn, answers.length - 1)] ?? []).map((address): LookupAddress => ({
      address,
      family: address.includes(":") ? 6 : 4,
    }));
    setImmediate(() => done(null, addresses));
  };
}

/** `PORT` is where somebody listens on this machine, and must hear nothing. */
const FORBIDDEN = [
  // This machine, in every way an address can be written.
  "http://127.0.0.1:PORT",
  "https://127.0.0.1:PORT",
  "HTTPS://LocalHost:PORT",
  "http://127.1:PORT",
  "http://127.0.1:PORT",
  "http://127.0.0.1.:PORT",
  "http://2130706433:PORT",
  "http://0x7f000001:PORT",
  "http://0x7f.0.0.1:PORT",
  "http://0x7F.1:PORT",
  "http://0177.0.0.1:PORT",
  "http://0177.0.0.01:PORT",
  "http://017700000001:PORT",
  "http://127.0.0.1:PORT/?http://example.com",
  "http://127.127.127.127:PORT",
  "http://127.255.255.254:PORT",
  "http://0:PORT",
  "http://0.0.0.0:PORT",
  "http://0.0.0.1:PORT",
  "http://①②⑦.⓪.⓪.①:PORT",
  "http://127。0。0。1:PORT",
  "http://１２７.0.0.1:PORT",
  "http://%31%32%37.0.0.1:PORT",
  "http://localhost:PORT",
  "http://LOCALHOST:PORT",
  "http://localhost.:PORT",
  "http://any.localhost:PORT",
  "http:127.0.0.1:PORT",
  "http:/127.0.0.1:PORT",
  "http:\\\\127.0.0.1:PORT",
  "http://[::1]:PORT",
  "http://[0:0:0:0:0:0:0:1]:PORT",
  "http://[0000:0000:0000:0000:0000:0000:0000:0001]:PORT",
  "http://[::]:PORT",
  "http://[::ffff:127.0.0.1]:PORT",
  "http://[::ffff:7f00:1]:PORT",
  "http://[0:0:0:0:0:ffff:127.0.0.1]:PORT",
  "http://[::ffff:0:127.0.0.1]:PORT",
  "http://[::127.0.0.1]:PORT",
  "http://[64:ff9b::127.0.0.1]:PORT",
  "http://[64:ff9b:1::7f00:1]:PORT",
  "http://[2002:7f00:1::]:PORT",
  "http://[2001:0:7f00:1::]:PORT",
  // Somebody else's name in front of it, or behind.
  "http://example.com@127.0.0.1:PORT",
  "http://example.com:80@127.0.0.1:PORT",
  "http://user:password@localhost:PORT",
  "http://127.0.0.1:PORT#@example.com",
  "http://127.0.0.1:PORT\\@example.com",
  // The networks around us.
  "http://10.0.0.1",
  "http://10.255.255.255",
  "http://172.16.0.1",
  "http://172.31.255.255",
  "http://192.168.0.1",
  "http://0xc0a80001",
  "http://3232235521",
  "http://100.64.0.1",
  "http://100.127.255.255",
  "http://[fc00::1]",
  "http://[fd12:3456::1]",
  "http://[fec0::1]",
  "http://[::ffff:10.0.0.1]",
  "http://[64:ff9b::10.0.0.1]",
  // Where clouds keep the secrets of their machines.
  "http://169.254.169.254/latest/meta-data",
  "http://169.254.170.2",
  "http://2852039166",
  "http://0xa9fea9fe",
  "http://[::ffff:169.254.169.254]",
  "http://[::ffff:a9fe:a9fe]",
  "http://[fd00:ec2::254]",
  "http://[fe80::1]",
  "http://100.100.100.200",
  "http://192.0.0.192",
  "http://168.63.129.16",
  // Nobody in particular.
  "http://192.0.2.1",
  "http://198.18.0.1",
  "http://198.51.100.1",
  "http://203.0.113.1",
  "http://224.0.0.1",
  "http://240.0.0.1",
  "http://255.255.255.255",
  "http://[ff02::1]",
  "http://[100::1]",
  "http://[2001:db8::1]",
  "http://[5f00::1]",
  // Not HTTP.
  "file:///etc/passwd",
  "data:text/plain,x",
  "ftp://example.com/x",
  "gopher://127.0.0.1:PORT/",
  "unix:/var/run/docker.sock",
  "javascript:alert(1)",
  "blob:http://127.0.0.1:PORT/x",
  "ws://127.0.0.1:PORT",
];

test("a workflow cannot make us call anybody who is not public, however it writes the address", async () => {
  const canary = await serve((_, response) => sendJson(response, "you should not see this"));
  const egress = new Egress();
  expect(FORBIDDEN.length).toBeGreaterThanOrEqual(60);
  for (const form of FORBIDDEN) {
    const url = form.replaceAll("PORT", String(canary.port));
    await expect(get(url, egress), url).rejects.toMatchObject(BLOCKED);
  }
  expect(canary.connections()).toBe(0);
});

test.each([
  "8.8.8.8",
  "1.1.1.1",
  "172.32.0.1",
  "100.128.0.1",
  "2606:4700:4700::1111",
  "::ffff:8.8.8.8",
  "64:ff9b::808:808",
])("%s is public", (address) => {
  expect(new Egress().allowsAddress(address)).toBe(true);
});

describe("a name", () => {
  const respond = (_: unknown, response: Parameters<typeof sendJson>[0]): void => sendJson(response, "reached");

  test.each<[string, readonly string[]]>([
    ["that leads to this machine", ["127.0.0.1"]],
    ["that leads to it in another form", ["::ffff:127.0.0.1"]],
    ["that leads to metadata", ["169.254.169.254"]],
    ["of which one address of several does", ["8.8.8.8", "127.0.0.1"]],
  ])("%s is blocked without a connection", async (_, addresses) => {
    const canary = await serve(respond);
    const url = `http://innocent.example:${canary.port}`;
    await expect(get(url, new Egress(), network({ "innocent.example": [addresses] }))).rejects.toMatchObject(BLOCKED);
    expect(canary.connections()).toBe(0);
  });

  test("that means something else when it is asked again is judged by the answer that is used", async () => {
    const open = await serve((_, response) => sendJson(response, "open", 200, { connection: "close" }), "127.0.0.2");
    const canary = await serve(respond);
    const lookup = network({ "rebind.example": [["127.0.0.2"], ["127.0.0.1"]] });
    const client = new HttpClient(new Egress({ allow: ["127.0.0.2/32"] }), { lookup });
    const handler = httpHandler(client, nodeHost);
    const call = (port: number): Promise<Json> | Json => handler(testCall({ url: `http://rebind.example:${port}` }));
    expect(await call(open.port)).toMatchObject({ body: "open" });
    await expect(call(open.port)).rejects.toMatchObject(BLOCKED);
    await expect(call(canary.port)).rejects.toMatchObject(BLOCKED);
    expect(canary.connections()).toBe(0);
  });

  test("does not tell where it leads", async () => {
    const lookup = network({ "innocent.example": [["10.11.12.13"]] });
    const error = await get("http://innocent.example", new Egress(), lookup).then(String, String);
    expect(error).toContain("innocent.example");
    expect(error).toContain("MILLRACE_EGRESS_ALLOW");
    expect(error).not.toContain("10.11.12.13");
  });
});

describe("what the operator allows", () => {
  test.each<[string, readonly string[], string, boolean]>([
    ["a host, at any port", ["127.0.0.1"], "http://127.0.0.1:PORT", true],
    ["a host written otherwise", ["127.0.0.1"], "http://0x7f000001:PORT", true],
    ["a host and its port", ["127.0.0.1:PORT"], "http://127.0.0.1:PORT", true],
    ["not its other ports", ["127.0.0.1:1"], "http://127.0.0.1:PORT", false],
    ["a name", ["localhost"], "http://localhost:PORT", true],
    ["a name in capitals, with a port", ["LocalHost:PORT"], "http://localhost:PORT", true],
    ["not the address behind it", ["localhost"], "http://127.0.0.1:PORT", false],
    ["a block", ["10.0.0.0/8", "127.0.0.0/8"], "http://127.0.0.1:PORT", true],
    ["names that lead into a block", ["127.0.0.0/8", "::1/128"], "http://localhost:PORT", true],
    ["not what is outside", ["127.0.0.2/31"], "http://127.0.0.1:PORT", false],
    ["nothing", [], "http://127.0.0.1:PORT", false],
  ])("%s", async (_, allow, url, allowed) => {
    const server = await serve((_request, response) => sendJson(response, "reached"));
    const filled = (text: string): string => text.replaceAll("PORT", String(server.port));
    const answer = get(filled(url), new Egress({ allow: allow.map(filled) }));
    if (allowed) expect(await answer).toMatchObject({ body: "reached" });
    else await expect(answer).rejects.toMatchObject(BLOCKED);
    expect(server.connections()).toBe(allowed ? 1 : 0);
  });

  test("a name, whether or not the root of all names is written behind it", () => {
    const egress = new Egress({ allow: ["api.internal:80"] });
    expect([egress.allowsHost("API.internal.", 80), egress.allowsHost("api.internal", 81)]).toEqual([true, false]);
  });

  test("this machine, in development, and nothing else that is private", async () => {
    const server = await serve((_, response) => sendJson(response, "reached"));
    const egress = new Egress({ loopback: true });
    expect(await get(server.url, egress)).toMatchObject({ body: "reached" });
    expect(await get(`http://localhost:${server.port}`, egress)).toMatchObject({ body: "reached" });
    await expect(get("http://169.254.169.254", egress)).rejects.toMatchObject(BLOCKED);
    await expect(get("http://10.0.0.1", egress)).rejects.toMatchObject(BLOCKED);
  });

  test.each(["[::1]:8080", "[::1]", "::1", "fd00::/8", "api.internal:8443", "10.0.0.7"])(
    "%s can be listed",
    (entry) => {
      expect(() => new Egress({ allow: [entry] })).not.toThrow();
    },
  );

  test.each([
    "",
    "a b",
    "10.0.0.0/33",
    "/8",
    "http://x",
    "host:port",
    "host:99999",
    "host:0",
    "10.0.0.0/99",
    "10/8",
    "fd00::/129",
    "user@host",
    "a/b",
    "[::1",
  ])("%o cannot: a rule that says nothing must not be taken for one", (entry) => {
    expect(() => new Egress({ allow: [entry] })).toThrow(EgressEntryInvalid);
  });
});

describe("a redirect", () => {
  test.each([301, 302, 303, 307, 308])("by %d to somebody who is not public is blocked", async (status) => {
    const canary = await serve((_, response) => sendJson(response, "no"));
    const open = await serve((_, response) => response.writeHead(status, { location: canary.url }).end());
    const egress = new Egress({ allow: [`127.0.0.1:${open.port}`] });
    await expect(get(open.url, egress)).rejects.toMatchObject(BLOCKED);
    expect(canary.connections()).toBe(0);
  });

  test("to another scheme is blocked", async () => {
    const open = await serve((_, response) => response.writeHead(302, { location: "file:///etc/passwd" }).end());
    await expect(get(open.url, new Egress({ loopback: true }))).rejects.toMatchObject(BLOCKED);
  });
});
