"""The fixed parts of the page on attention: its frame, its style sheet and its script."""

import string

__all__ = ["PAGE", "SCRIPT", "STYLE"]

PAGE = string.Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; base-uri 'none';
 form-action 'none'; style-src '$style_hash'; script-src '$script_hash'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>$style</style>
</head>
<body>
<h1>$title</h1>
<p id="hint">Choose a token, by pointing, tapping or the keyboard (Tab, then the arrow keys; Enter
keeps it, Escape lets it go), to see what it looks at. The darker, the more probable:
<span class="token seen long example">$long_side</span>
<span class="token seen global example">$global_side</span> tokens.</p>
<div id="controls">
$controls
</div>
<h2 id="global-title">$global_title tokens</h2>
<div id="global" role="group" aria-labelledby="global-title">$global_tokens</div>
<h2 id="long-title">$long_title tokens</h2>
<div id="long" role="group" aria-labelledby="long-title">$long_tokens</div>
<div id="result">
<p id="told" aria-live="polite"></p>
<table id="seen" hidden>
<caption></caption>
<thead><tr><th scope="col">token</th><th scope="col">side</th><th scope="col">position</th>
<th scope="col">value</th></tr></thead>
<tbody></tbody>
</table>
</div>
<details>
<summary>Everything in short as a table</summary>
<div class="wide">$table</div>
</details>
<script type="application/json" id="data">$data</script>
<script>$script</script>
</body>
</html>
""")

STYLE = """
:root { color-scheme: light dark; --text: #1f2328; --page: #fafafa; --card: #ffffff;
  --line: #d0d4da; --quiet: #57606a; --strength: .65; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6e8eb; --page: #15181c; --card: #1d2127; --line: #3a4049; --quiet: #a3abb5;
    --strength: .45; } }
body { font: 1rem/1.7 system-ui, sans-serif; color: var(--text); background: var(--page);
  max-width: 60rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.25; }
h2 { font-size: 1.05rem; margin: 1.2rem 0 .3rem; }
#hint, caption, summary { color: var(--quiet); }
#controls label { margin-right: 1rem; }
select { font: inherit; color: inherit; background: var(--card); border: 1px solid var(--line);
  border-radius: .3rem; padding: .1rem .3rem; }
#global, #long { background: var(--card); border: 1px solid var(--line); border-radius: .5rem;
  padding: .6rem .8rem; max-height: 55vh; overflow-y: auto; }
#result { position: sticky; bottom: 0; max-height: 40vh; overflow-y: auto;
  background: var(--page); border-top: 1px solid var(--line); margin-top: 1rem; }
.token { unicode-bidi: isolate; border-radius: .2rem; cursor: pointer; }
#global .token { display: inline-block; margin: 0 .5rem .2rem 0; padding: 0 .3rem;
  border: 1px solid var(--line); }
.example { --p: .7; padding: 0 .3rem; cursor: default; }
.seen { background: rgb(0 114 178 / calc(var(--p) * var(--strength))); }
.seen.global, .seen.below { background: rgb(230 159 0 / calc(var(--p) * var(--strength))); }
.seen.above { background: rgb(0 114 178 / calc(var(--p) * var(--strength))); }
.query, .token:focus-visible { outline: .15rem solid var(--text); outline-offset: .05rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { text-align: left; }
th, td { padding: .1rem .8rem .1rem 0; text-align: left; border-bottom: 1px solid var(--line); }
.wide { overflow-x: auto; }
"""

SCRIPT = """
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const numLong = data.long.length;
const words = data.long.concat(data.global);
const tokens = new Array(words.length);
const find = (id) => document.getElementById(id);
for (const side of ["long", "global"]) {
  for (const token of find(side).querySelectorAll(".token")) {
    tokens[Number(token.dataset.number)] = token;
    token.setAttribute("role", "button");
    token.setAttribute("tabindex", token.dataset.first ? "0" : "-1");
  }
}
let current = null;  // The token that is shown, by number.
let kept = false;  // Whether it stays when the pointer moves on.

function sideOf(number) { return number < numLong ? "long" : "global"; }
function positionOf(number) { return number < numLong ? number : number - numLong; }
function sideNameOf(number) { return data.sides[number < numLong ? 0 : 1]; }
function nameOf(number) {
  return `${words[number]} (${sideNameOf(number)} ${positionOf(number)})`;
}
function choice(id) { return find(id) ? Number(find(id).value) : null; }

// [[number of a token, value], ...] of what a token looks at, the most probable first.
function seenBy(number) {
  const rows = data.attention.find((x) => x.layer === choice("layer") &&
    x.head === choice("head") && x.side === sideOf(number));
  const row = rows ? rows.queries.indexOf(positionOf(number)) : -1;
  if (row < 0) return [];
  const pairs = [];
  for (let i = rows.starts[row]; i < rows.starts[row + 1]; i++) {
    pairs.push([rows.keys[i], rows.probabilities[i]]);
  }
  return pairs;
}

function attributed() {
  const pairs = data.attributions.map((value, number) => [number, value]);
  return pairs.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
}

function color(pairs, isSigned) {
  for (const token of tokens) token.classList.remove("seen", "above", "below");
  const most = Math.max(...pairs.slice(0, 1).map((x) => Math.abs(x[1])), 1e-30);
  for (const [number, value] of pairs) {
    if (isSigned) tokens[number].classList.add(value < 0 ? "below" : "above");
    tokens[number].classList.add("seen");
    tokens[number].style.setProperty("--p", Math.abs(value) / most);
  }
}

function fill(pairs, caption) {
  const table = find("seen");
  table.hidden = pairs.length === 0;
  table.caption.textContent = caption;
  const rows = pairs.slice(0, 12).map(([number, value]) => {
    const row = document.createElement("tr");
    const place = [sideNameOf(number), positionOf(number)];
    for (const text of [words[number], ...place, value.toPrecision(3)]) {
      row.appendChild(document.createElement("td")).textContent = text;
    }
    return row;
  });
  table.tBodies[0].replaceChildren(...rows);
}

function draw() {
  const isSigned = find("view") !== null && find("view").value === "attributions";
  for (const token of tokens) {
    token.classList.remove("query");
    token.removeAttribute("aria-pressed");
  }
  if (isSigned) {
    const pairs = attributed();
    color(pairs, true);
    fill(pairs, "Integrated gradients: what adds to the score (blue) or takes from it (orange)");
    find("told").textContent = "";
    return;
  }
  if (current === null) {
    color([], false);
    fill([], "");
    find("told").textContent = "";
    return;
  }
  const pairs = seenBy(current);
  color(pairs, false);
  tokens[current].classList.add("query");
  if (kept) tokens[current].setAttribute("aria-pressed", "true");
  const name = nameOf(current);
  const first = pairs.slice(0, 3).map(([number, value]) =>
    `${nameOf(number)} ${value.toFixed(2)}`);
  find("told").textContent = pairs.length ? `${name} looks at ${first.join(", ")}` :
    `${name}: its attention is not in this file`;
  fill(pairs, `What ${name} looks at`);
}

function numberAt(event) {
  const token = event.target.closest("[data-number]");
  return token ? Number(token.dataset.number) : null;
}

function show(number) {
  if (number === null || kept) return;
  current = number;
  draw();
}

function go(number) {
  for (const token of tokens) token.setAttribute("tabindex", "-1");
  tokens[number].setAttribute("tabindex", "0");
  tokens[number].focus();
}

function keep(number) {
  kept = !(kept && current === number);
  current = number;
  draw();
}

for (const side of ["long", "global"]) {
  find(side).addEventListener("mouseover", (event) => show(numberAt(event)));
  find(side).addEventListener("focusin", (event) => show(numberAt(event)));
  find(side).addEventListener("click", (event) => {
    if (numberAt(event) !== null) keep(numberAt(event));
  });
  find(side).addEventListener("keydown", (event) => {
    const number = numberAt(event);
    if (number === null) return;
    const first = side === "long" ? 0 : numLong;
    const last = side === "long" ? numLong - 1 : tokens.length - 1;
    const steps = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 };
    if (event.key in steps) {
      go(Math.min(last, Math.max(first, number + steps[event.key])));
    } else if (event.key === "Enter" || event.key === " ") {
      keep(number);
    } else if (event.key === "Escape") {
      kept = false;
      draw();
    } else {
      return;
    }
    event.preventDefault();
  });
}
for (const id of ["layer", "head", "view"]) {
  if (find(id)) find(id).addEventListener("change", draw);
}
draw();
"""
