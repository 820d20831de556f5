import type { Route } from "./route.ts";

/** A page that lists every route: one file, no scripts, nothing from elsewhere. */
export function docsPage(routes: readonly Route[], version: string): string {
  const tags = [...new Set(routes.map(({ tag }) => tag))];
  const sections = tags.map((tag) => {
    const rows = routes.filter((route) => route.tag === tag).map(row);
    return `<section><h2>${escape(tag)}</h2>${rows.join("")}</section>`;
  });
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Millrace API</title><style>${STYLE}</style></head><body>
<header><h1>Millrace API</h1><p>Release ${escape(version)} · <a href="/openapi.json">OpenAPI 3.1</a> ·
errors are <code>application/problem+json</code> with a stable <code>code</code> ·
<code>Idempotency-Key</code> on every POST</p></header>
${sections.join("\n")}
</body></html>`;
}

function row({ method, path, summary, permission, answers, problems = [] }: Route): string {
  const statuses = Object.entries(answers).map(([status, { description }]) => `${status} ${escape(description)}`);
  const needs = permission === "open" ? "" : ` · needs <i>${escape(permission)}</i>`;
  const codes = problems.map((code) => `<code>${escape(code)}</code>`).join(" ");
  return `<article><h3><b class="${method}">${method}</b> <code>${escape(path)}</code></h3><p>${escape(summary)}</p>
<small>${statuses.join(" · ")}${needs}${codes === "" ? "" : `<br>${codes}`}</small></article>`;
}

function escape(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}

const STYLE = `:root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}
body{max-width:60rem;margin:0 auto;padding:1rem}
article{border-top:1px solid #8884;padding:.5rem 0}
h3{margin:0;font-size:1rem;font-weight:400}
p{margin:.2rem 0}
b{display:inline-block;min-width:4.5rem}
.GET{color:#0a7}.POST{color:#27c}.DELETE{color:#c33}`;
