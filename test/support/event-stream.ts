/** One frame of an event stream. */
export interface Frame {
  readonly id?: string;
  readonly event?: string;
  readonly data?: string;
}

export interface Stream {
  readonly status: number;
  readonly headers: Headers;
  readonly frames: AsyncGenerator<Frame, void>;
  /** All frames until the server ends the stream. */
  all(): Promise<Frame[]>;
  /** The answer as it is, where it is no stream. */
  text(): Promise<string>;
  close(): void;
}

/** Opens an event stream as a browser does. */
export async function openStream(url: string, headers: Readonly<Record<string, string>> = {}): Promise<Stream> {
  const abort = new AbortController();
  const response = await fetch(url, { headers: { accept: "text/event-stream", ...headers }, signal: abort.signal });
  const frames = framesOf(response);
  return {
    status: response.status,
    headers: response.headers,
    frames,
    all: async () => {
      const all: Frame[] = [];
      for await (const frame of frames) all.push(frame);
      return all;
    },
    text: () => response.text(),
    close: () => abort.abort(),
  };
}

async function* framesOf(response: Response): AsyncGenerator<Frame, void> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk as Uint8Array, { stream: true });
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const lines = text.slice(0, end).split("\n");
      text = text.slice(end + 2);
      const fields = lines
        .filter((line) => /^(id|event|data): /.test(line))
        .map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]);
      if (fields.length > 0) yield Object.fromEntries(fields) as Frame;
    }
  }
}
