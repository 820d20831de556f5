import { z } from "zod";
import type { Route, RouteAnswer } from "./route.ts";
import { problem } from "./schemas.ts";
import { PROBLEM_TYPE } from "./problem.ts";

type Schema = Record<string, unknown>;

/** The OpenAPI 3.1 document of a table of routes. */
export function openapi(routes: readonly Route[], version: string): string {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes) {
    const path = (paths[route.path] ??= {});
    path[route.method.toLowerCase()] = operationOf(route);
  }
  const document = {
    openapi: "3.1.0",
    jsonSchemaDialect: "https://json-schema.org/draft/2020-12/schema",
    info: {
      title: "Millrace",
      version,
      description: "Runs workflows that are directed acyclic graphs, and loses nothing when any process dies.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/" }],
    tags: [...new Set(routes.map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    components: {
      schemas: { Problem: schemaOf(problem, "output") },
      responses: {
        Problem: {
          description: "What was wrong, as RFC 9457 has it",
          content: { [PROBLEM_TYPE]: { schema: { $ref: "#/components/schemas/Problem" } } },
        },
      },
      securitySchemes: { key: { type: "http", scheme: "bearer" } },
    },
  };
  return JSON.stringify(document);
}

function operationOf(route: Route): Schema {
  const parameters = [
    ...[...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
      name,
      in: "path",
      required: true,
      schema: TEXT,
    })),
    ...queryParameters(route),
    ...(route.headers ?? []).map((header) => ({ ...header, in: "header", required: false, schema: TEXT })),
    ...(route.method === "POST" ? [IDEMPOTENCY_KEY] : []),
  ];
  return {
    operationId: operationId(route),
    tags: [route.tag],
    summary: route.summary,
    ...(route.permission !== "open" && { security: [{ key: [] }], "x-permission": route.permission }),
    ...(route.permission === "open" && { security: [] }),
    ...(parameters.length > 0 && { parameters }),
    ...(route.body !== undefined && { requestBody: requestBody(route) }),
    responses: {
      ...Object.fromEntries(Object.entries(route.answers).map(([status, answer]) => [status, responseOf(answer)])),
      default: { $ref: "#/components/responses/Problem" },
    },
    ...(route.problems !== undefined && { "x-problems": route.problems }),
  };
}

const TEXT = { type: "string" };

const IDEMPOTENCY_KEY = {
  name: "Idempotency-Key",
  in: "header",
  required: false,
  description: "The same request with the same key is done once, and answered the same",
  schema: { type: "string", minLength: 1, maxLength: 255 },
};

function queryParameters({ query }: Route): readonly Schema[] {
  if (!(query instanceof z.ZodObject)) return [];
  const { properties = {}, required = [] } = schemaOf(query, "input") as {
    properties?: Record<string, Schema>;
    required?: readonly string[];
  };
  return Object.entries(properties).map(([name, { description, ...schema }]) => ({
    name,
    in: "query",
    required: required.includes(name),
    ...(description !== undefined && { description }),
    schema,
  }));
}

function requestBody({ body }: Route): Schema {
  const schema = schemaOf(body!.schema, "input");
  const type = body!.isForm === true ? "application/x-www-form-urlencoded" : "application/json";
  const content: Record<string, unknown> = { [type]: { schema } };
  if (body!.isDefinition === true) content["application/yaml"] = { schema };
  return { required: false, content };
}

function responseOf({ description, schema, type = "application/json", textType }: RouteAnswer): Schema {
  if (schema === undefined && type === "application/json") return { description };
  return {
    description,
    content: {
      [type]: { schema: schema === undefined ? TEXT : schemaOf(schema, "output") },
      ...(textType !== undefined && { [textType]: { schema: TEXT } }),
    },
  };
}

function schemaOf(schema: z.ZodType, io: "input" | "output"): Schema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: "any" }) as Schema;
  return rest;
}

function operationId({ method, path }: Route): string {
  const words = path.split("/").filter((part) => part !== "" && part !== "v1");
  const name = words.map((word) => (word.startsWith("{") ? `by_${word.slice(1, -1)}` : word.replace(/\W/g, "_")));
  return [method.toLowerCase(), ...name].join("_");
}
