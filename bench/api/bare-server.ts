/** The least that an HTTP server can do with the bodies that ours is sent: parse them and answer. */
import Fastify from "fastify";

const server = Fastify();
let made = 0;
server.post("/*", async (_, reply) => reply.code(202).send({ execution_id: `run-${made++}`, status: "PENDING" }));
// And the least with bytes that ours answers with: send them.
let bytes = "";
server.addContentTypeParser("text/plain", { parseAs: "string", bodyLimit: 64 * 1024 * 1024 }, (_, body, done) => {
  done(null, body);
});
server.put("/bytes", async ({ body }, reply) => {
  bytes = body as string;
  return reply.code(204).send();
});
server.get("/bytes", async (_, reply) => reply.type("application/json").send(bytes));
const url = await server.listen({ host: "127.0.0.1", port: 0 });
process.on("disconnect", () => process.exit());
process.send!({ url });
