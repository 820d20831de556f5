/** The few shapes that our charts are made of, as SVG text. */

const FONT = "font-family='system-ui, sans-serif'";

export interface Drawing {
  readonly width: number;
  readonly height: number;
  readonly parts: readonly string[];
}

export function svg({ width, height, parts }: Drawing): string {
  const box = `viewBox='0 0 ${width} ${height}' width='${width}' height='${height}'`;
  const paper = `<rect width='${width}' height='${height}' fill='#fff'/>`;
  return `<svg xmlns='http://www.w3.org/2000/svg' ${box} role='img'>${paper}${parts.join("")}</svg>\n`;
}

export interface TextStyle {
  readonly size?: number;
  readonly anchor?: "start" | "middle" | "end";
  readonly bold?: boolean;
  readonly fill?: string;
}

export function text(x: number, y: number, content: string, style: TextStyle = {}): string {
  const { size = 12, anchor = "start", bold = false, fill = "#222" } = style;
  const weight = bold ? " font-weight='600'" : "";
  return `<text x='${at(x)}' y='${at(y)}' ${FONT} font-size='${size}' text-anchor='${anchor}' fill='${fill}'${weight}>${escape(content)}</text>`;
}

export function rect(x: number, y: number, width: number, height: number, fill: string): string {
  return `<rect x='${at(x)}' y='${at(y)}' width='${at(width)}' height='${at(height)}' fill='${fill}'/>`;
}

export function line(points: readonly (readonly [number, number])[], stroke: string, width = 1.5): string {
  const path = points.map(([x, y]) => `${at(x)},${at(y)}`).join(" ");
  return `<polyline points='${path}' fill='none' stroke='${stroke}' stroke-width='${width}'/>`;
}

export function dot(x: number, y: number, fill: string): string {
  return `<circle cx='${at(x)}' cy='${at(y)}' r='3' fill='${fill}'/>`;
}

function at(value: number): string {
  return String(Math.round(value * 10) / 10);
}

function escape(content: string): string {
  return content.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
