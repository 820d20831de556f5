import { shownState } from "../drawing/states.ts";
import { type Html, markup, trusted } from "./html.ts";

/** A whole page: one file, no script, nothing from elsewhere. */
export function layout(title: string, body: Html, refreshSeconds?: number): string {
  const refresh = refreshSeconds !== undefined && markup`<meta http-equiv="refresh" content="${refreshSeconds}">`;
  return markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">${refresh}
<title>${title} · Millrace</title>
<style>${trusted(STYLE)}</style>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header>
<a class="brand" href="/">Millrace</a>
<nav aria-label="Pages"><a href="/">Executions</a> <a href="/docs">API</a> <a href="/metrics">Metrics</a></nav>
</header>
<main id="content">
${body}
</main>
</body>
</html>
`.text;
}

/** A state: symbol and word, coloured besides. */
export function state(status: string): Html {
  const { symbol, word } = shownState(status);
  return markup`<span class="state ${word}"><span aria-hidden="true">${symbol}</span> ${word}</span>`;
}

const STYLE = `:root{color-scheme:light dark;--text:#1a1a1a;--soft:#555;--line:#ccc;--back:#fff;--box:#f5f5f5;--link:#0b57a4;
--good:#1a7f37;--bad:#b3261e;--busy:#0b57a4;--wait:#8a5a00}
@media (prefers-color-scheme:dark){:root{--text:#f0f0f0;--soft:#b5b5b5;--line:#444;--back:#161616;--box:#222;--link:#8ab8f0;
--good:#57c274;--bad:#ff8a80;--busy:#7db7f5;--wait:#e5b04a}}
*{box-sizing:border-box}body{margin:0;font:16px/1.5 system-ui,sans-serif;color:var(--text);background:var(--back)}
header{display:flex;gap:1.5rem;align-items:baseline;padding:.75rem 1.25rem;border-bottom:1px solid var(--line)}
.brand{font-weight:700;font-size:1.1rem;color:inherit;text-decoration:none}nav a{margin-right:1rem}
main{padding:1.25rem;max-width:80rem;margin:0 auto}a{color:var(--link)}
a:focus-visible,summary:focus-visible,.scroll:focus-visible{outline:3px solid var(--link);outline-offset:2px}
.skip{position:absolute;left:-999px}.skip:focus{left:1rem;top:.5rem;background:var(--back);padding:.25rem .5rem}
h1{font-size:1.4rem;margin:.25rem 0;overflow-wrap:anywhere}h2{font-size:1.1rem;margin:1.75rem 0 .5rem}
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.4rem .75rem .4rem 0;border-bottom:1px solid var(--line);vertical-align:top}
td,th[scope=row],dt,dd,li{overflow-wrap:anywhere}.short{white-space:nowrap;overflow-wrap:normal}th{font-weight:600;color:var(--soft)}caption{text-align:left;color:var(--soft);padding-bottom:.25rem}
code,pre{font:14px/1.45 ui-monospace,monospace}pre{background:var(--box);padding:.75rem;overflow:auto;max-height:24rem;margin:.25rem 0;white-space:pre-wrap;overflow-wrap:anywhere}
.soft{color:var(--soft)}.scroll{overflow:auto;border:1px solid var(--line);border-radius:6px}
.state{white-space:nowrap;font-weight:600}.completed{color:var(--good)}.failed{color:var(--bad)}.running,.queued{color:var(--busy)}
.waiting,.paused,.partial{color:var(--wait)}.skipped,.cancelled,.pending{color:var(--soft)}
dl{display:grid;grid-template-columns:fit-content(40%) 1fr;gap:.2rem 1rem;margin:.5rem 0}dt{color:var(--soft)}dd{margin:0}
.filters{margin:1rem 0}.filters a{margin-right:.75rem}.filters [aria-current]{font-weight:700;color:inherit;text-decoration:none}
@media (max-width:40rem){.wide{display:none}}
.problem{color:var(--bad);font-weight:600}
input,button{font:inherit;color:inherit;background:var(--box);border:1px solid var(--line);border-radius:6px;padding:.35rem .75rem}
button{cursor:pointer}input{max-width:100%}input:focus-visible,button:focus-visible{outline:3px solid var(--link);outline-offset:2px}`;
