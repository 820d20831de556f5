/** A workflow that runs anywhere, without a key, a network or a handler: the one that `dev` shows first. */
export const SAMPLE = `name: hello
input_schema:
  type: object
  properties: { name: { type: string } }
nodes:
  - { id: load, handler: transform, config: { value: { pages: ["one", "two", "three"], name: "{{ input.name | default(\\"world\\") }}" } } }
  - { id: ocr, handler: delay, dependencies: [load], config: { seconds: 0.1 } }
  - { id: meta, handler: transform, dependencies: [load], config: { fields: { pages: "size(load.pages)" } } }
  - id: merge
    handler: output
    dependencies: [ocr, meta]
    config: { greeting: "hello {{ load.name }}", pages: "{{ meta.pages }}" }
`;
