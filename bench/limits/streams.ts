import { createClient } from "@redis/client";

export const TASKS = "T";
export const RESULTS = "R";
/** Entries in one pipeline. */
export const BATCH = 500;
export const TASK_TEXT: string = JSON.stringify({
  run: "0190b1c2-7d3e-7f00-8a11-0123456789ab",
  step: "b",
  attempt: 1,
  in: { n: 12_345, filler: "x".repeat(105) },
});

export interface Entry {
  readonly id: string;
  readonly text: string;
}

export interface Streams {
  run(commands: readonly (readonly string[])[]): Promise<unknown>;
  /** Waits a little while there is nothing. */
  read(stream: string): Promise<readonly Entry[]>;
  close(): void;
}

type Read = readonly [readonly [stream: string, entries: readonly [id: string, fields: readonly string[]][]]] | null;

export async function connectStreams(url: string): Promise<Streams> {
  const client = createClient({ url, RESP: 2 });
  await client.connect();
  const more = ["COUNT", String(BATCH), "BLOCK", "200"];
  return {
    run: (commands) => {
      const pipeline = client.multi();
      for (const command of commands) pipeline.addCommand([...command]);
      return pipeline.execAsPipeline();
    },
    read: async (stream) => {
      const given = ["XREADGROUP", "GROUP", "g", "c", ...more, "STREAMS", stream, ">"];
      const answer = (await client.sendCommand(given)) as unknown as Read;
      return answer === null ? [] : answer[0][1].map(([id, fields]) => ({ id, text: fields[1]! }));
    },
    close: () => client.destroy(),
  };
}
