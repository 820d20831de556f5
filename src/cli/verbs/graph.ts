import { type Diagram, diagramOf } from "../../drawing/diagram.ts";
import { drawDot } from "../../drawing/draw-dot.ts";
import { drawMermaid } from "../../drawing/draw-mermaid.ts";
import { drawSvg } from "../../drawing/draw-svg.ts";
import { drawText, type StatusOf } from "../../drawing/draw-text.ts";
import { option, type Verb } from "../call.ts";
import { definitionText, goodDefinition, isFile } from "../definition-file.ts";
import { EXIT } from "../exit-code.ts";
import { Failure } from "../failure.ts";

const FORMATS: Readonly<Record<string, (diagram: Diagram, statusOf?: StatusOf) => string>> = {
  text: drawText,
  mermaid: drawMermaid,
  dot: drawDot,
  svg: (diagram, statusOf) => drawSvg(diagram, { statusOf }),
};

export const verb: Verb = async (call) => {
  const format = option(call, "format") ?? "text";
  const draw = Object.hasOwn(FORMATS, format) ? FORMATS[format] : undefined;
  if (draw === undefined) {
    throw new Failure(EXIT.usage, `--format must be text, mermaid, dot or svg, not ${JSON.stringify(format)}.`);
  }
  const [name] = call.args as [string];
  const { diagram, statusOf } = await drawn(name);
  if (call.json) {
    const nodes = diagram.nodes.map((node) => ({
      ...node,
      ...(statusOf !== undefined && { status: statusOf(node.id) }),
    }));
    const ids = diagram.nodes.map(({ id }) => id);
    const edges = diagram.edges.map(({ from, to, on }) => ({ from: ids[from], to: ids[to], on }));
    call.terminal.out(`${JSON.stringify({ name: diagram.name, nodes, edges }, null, 2)}\n`);
  } else call.terminal.out(draw(diagram, statusOf));
  return EXIT.done;

  async function drawn(given: string): Promise<{ readonly diagram: Diagram; readonly statusOf?: StatusOf }> {
    if (isFile(call.terminal, given)) {
      // Whether somebody serves a handler makes no difference to a picture.
      const anything = { get: () => undefined, names: () => [], allowMissing: true };
      const workflow = await goodDefinition(await definitionText(call.terminal, given), anything);
      return { diagram: diagramOf(workflow) };
    }
    const { drawnFromServer } = await import("../server-diagram.ts");
    return drawnFromServer(call, given);
  }
};
