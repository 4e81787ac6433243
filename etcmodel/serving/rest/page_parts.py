"""The fixed parts of the page at `/`: its frame, its forms and its style sheet."""

import string

__all__ = ["FORMS", "PAGE", "STYLE"]

PAGE = string.Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; base-uri 'none';
 form-action 'none'; connect-src 'self'; img-src data:; style-src '$style_hash';
 script-src '$script_hash'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>$name</title>
<style>$style</style>
</head>
<body>
<header>
<h1>$name</h1>
<p class="quiet">Version $version</p>
</header>
<main>
<form id="form" class="card">
$form
<p id="error" role="alert" hidden></p>
</form>
<section id="result" aria-labelledby="result-title" aria-live="polite" hidden>
<h2 id="result-title">Answer</h2>
<div id="answer" class="card"></div>
<div id="more"></div>
</section>
</main>
<details>
<summary>Signatures of the model</summary>
$signatures
</details>
<script type="application/json" id="data">$data</script>
<script>$script</script>
</body>
</html>
""")

_ANSWER = """<p class="quiet">Paste one or more documents and ask a question about them.</p>
<p><label for="question">Question</label>
<input id="question" required autocomplete="off"></p>
<div id="documents"></div>
<p class="buttons"><button type="submit" id="send">Ask</button>
<button type="button" id="add" class="second">Add a document</button></p>"""

_TEXT = """<p><label for="text">Text</label>
<textarea id="text" rows="10" required></textarea></p>
<p class="buttons"><button type="submit" id="send">{}</button></p>"""

_OTHER = """<p class="quiet">This model takes no plain text. Ask it by a request in JSON; its
signatures are listed below.</p>
<p><label for="text">Request</label>
<textarea id="text" rows="12" required spellcheck="false" class="code">$request</textarea></p>
<p class="buttons"><button type="submit" id="send">Send</button></p>"""

FORMS = {
    "answer": string.Template(_ANSWER),
    "classify": string.Template(_TEXT.format("Classify")),
    "keyphrases": string.Template(_TEXT.format("Find key phrases")),
    "other": string.Template(_OTHER),
}

STYLE = """
:root { color-scheme: light dark; --text: #1f2328; --page: #f4f6f8; --card: #ffffff;
  --line: #c4cad1; --quiet: #57606a; --accent: #0b5cad; --on-accent: #ffffff;
  --answer: #ffe08a; --on-answer: #1f2328; --evidence: 11 120 80; --long: 0 114 178;
  --global: 213 94 0; --wrong: #b3261e; --strength: .55; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6e8eb; --page: #14171b; --card: #1d2127; --line: #48505b; --quiet: #a9b1bb;
    --accent: #8cc2ff; --on-accent: #10233a; --answer: #e3b341; --on-answer: #14171b;
    --evidence: 70 200 140; --wrong: #ff9b93; --strength: .6; } }
* { box-sizing: border-box; }
body { font: 1rem/1.6 system-ui, sans-serif; color: var(--text); background: var(--page);
  max-width: 54rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; overflow-wrap: anywhere; }
header { display: flex; align-items: baseline; gap: 1rem; flex-wrap: wrap; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: .3rem 0; }
h2 { font-size: 1.2rem; margin: 1.8rem 0 .5rem; }
h3 { font-size: 1rem; margin: 1.2rem 0 .4rem; }
.quiet, caption, summary { color: var(--quiet); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: .6rem;
  padding: .9rem 1.1rem; }
form p { margin: 0 0 .8rem; }
label { display: block; font-weight: 600; margin-bottom: .2rem; }
input, textarea { width: 100%; font: inherit; color: inherit; background: var(--page);
  border: 1px solid var(--quiet); border-radius: .4rem; padding: .45rem .6rem; }
textarea { resize: vertical; }
.code, code, pre { font-family: ui-monospace, monospace; font-size: .9rem; }
pre { white-space: pre-wrap; margin: 0; }
button { font: inherit; font-weight: 600; border-radius: .4rem; padding: .4rem 1.1rem;
  border: 1px solid var(--accent); background: var(--accent); color: var(--on-accent);
  cursor: pointer; }
button.second { background: transparent; color: var(--accent); }
button:disabled { opacity: .6; cursor: progress; }
:focus-visible { outline: .18rem solid var(--accent); outline-offset: .12rem; }
.buttons { display: flex; gap: .7rem; }
#error { color: var(--wrong); font-weight: 600; margin: .4rem 0 0; }
.best { font-size: 1.35rem; font-weight: 600; }
.text { white-space: pre-wrap; max-height: 60vh; overflow-y: auto; }
.text + h3 { margin-top: 1.4rem; }
.example { --e: .8; }
.evidence { text-decoration: underline .16em rgb(var(--evidence) / calc(.15 + .85 * var(--e)));
  text-underline-offset: .25em; text-decoration-skip-ink: none; }
[data-token] { cursor: pointer; border-radius: .2rem; scroll-margin: 6rem; }
.seen { background: rgb(var(--long) / calc(var(--p) * var(--strength))); }
.seen-global { background: rgb(var(--global) / calc(var(--p) * var(--strength))); }
.query { outline: .15rem solid var(--text); }
mark, mark.seen, mark.seen-global { background: var(--answer); color: var(--on-answer); }
mark.seen { box-shadow: inset 0 -.3em rgb(var(--long) / var(--p)); }
mark.seen-global { box-shadow: inset 0 -.3em rgb(var(--global) / var(--p)); }
#told { position: sticky; bottom: 0; margin: 1rem 0 0; padding: .4rem 0; min-height: 2.5em;
  background: var(--page); border-top: 1px solid var(--line); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; width: 100%; }
caption { text-align: left; }
th, td { padding: .25rem .8rem .25rem 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--line); }
th { overflow-wrap: normal; }
td:nth-child(3) { white-space: nowrap; }
td.number { white-space: nowrap; width: 9rem; }
meter { width: 4.5rem; vertical-align: middle; margin-right: .4rem; }
details { margin-top: 2rem; }
details table { margin: .8rem 0; }
"""
