/** The least that an HTTP server can do with the bodies that ours is sent: parse them and answer. */
import Fastify from "fastify";

const server = Fastify();
let made = 0;
server.post("/*", async (_, reply) => reply.code(202).send({ execution_id: `run-${made++}`, status: "PENDING" }));
const url = await server.listen({ host: "127.0.0.1", port: 0 });
process.on("disconnect", () => process.exit());
process.send!({ url });
