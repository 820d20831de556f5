import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What happens to a request: it passes; its answer never comes; it is refused; its answer breaks off after some bytes. */
export type Fate = "pass" | "lose-answer" | 503 | { readonly cutAfterBytes: number };

/** Something unreliable between a client and a server. */
export class CuttingProxy {
  readonly requests: { readonly method: string; readonly path: string; readonly key: string | undefined }[] = [];
  #fate: (path: string, count: number) => Fate = () => "pass";
  readonly #target: URL;
  readonly #server: Server;

  constructor(target: string) {
    this.#target = new URL(target);
    this.#server = createServer((incoming, answer) => this.#handle(incoming, answer));
  }

  /** `count` is how often this path was asked for, from 1. */
  set fate(fate: (path: string, count: number) => Fate) {
    this.#fate = fate;
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #handle(incoming: IncomingMessage, answer: ServerResponse): void {
    const { method = "GET", url = "/", headers } = incoming;
    const path = url.split("?")[0]!;
    this.requests.push({ method, path, key: headers["idempotency-key"] as string | undefined });
    const fate = this.#fate(path, this.requests.filter((one) => one.path === path).length);
    if (fate === 503) {
      incoming.resume();
      answer.writeHead(503, { "retry-after": "0" }).end("not now");
      return;
    }
    const options = { host: this.#target.hostname, port: this.#target.port, method, path: url };
    const forwarded = request({ ...options, headers: { ...headers, host: this.#target.host } }, (response) => {
      if (fate === "lose-answer") {
        response.resume();
        response.once("end", () => answer.destroy());
        return;
      }
      answer.writeHead(response.statusCode!, response.headers);
      let left = typeof fate === "object" ? fate.cutAfterBytes : Infinity;
      response.on("data", (bytes: Buffer) => {
        answer.write(bytes.subarray(0, left));
        left -= bytes.length;
        if (left <= 0) setTimeout(() => answer.destroy(), 20);
      });
      response.on("end", () => answer.end());
    });
    forwarded.on("error", () => answer.destroy());
    answer.on("close", () => forwarded.destroy());
    incoming.pipe(forwarded);
  }
}
