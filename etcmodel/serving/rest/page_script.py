"""The script of the page at `/`: asks the server, and shows the answer in the text."""

__all__ = ["SCRIPT"]

SCRIPT = """
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const find = (id) => document.getElementById(id);
let numAsked = 0;  // Answers to earlier questions are dropped.

function make(tag, text = "", className = "") {
  const element = document.createElement(tag);
  if (text) element.textContent = text;
  if (className) element.className = className;
  return element;
}

function percent(probability) { return `${(100 * probability).toFixed(1)} %`; }

function meter(probability, label) {
  const cell = make("td", "", "number");
  const bar = make("meter");
  bar.value = probability;
  bar.setAttribute("aria-label", label);
  cell.append(bar, percent(probability));
  return cell;
}

// Rows of [probability, text, ...]; the texts of a row go into cells of their own.
function table(caption, titles, rows) {
  const result = make("table");
  result.append(make("caption", caption));
  const head = result.createTHead().insertRow();
  for (const title of titles) head.append(make("th", title));
  for (const cell of head.cells) cell.scope = "col";
  const body = result.createTBody();
  for (const [probability, ...texts] of rows) {
    const row = body.insertRow();
    row.append(meter(probability, `${titles[0]} of ${texts[0]}`));
    for (const text of texts) row.append(make("td", text));
  }
  return result;
}

// TensorFlow Serving's JSON has NaN and Infinity, which JSON.parse refuses.
function parse(text) {
  return JSON.parse(text.replace(/"(?:[^"\\\\]|\\\\.)*"|-?(?:NaN|Infinity)/g,
    (token) => token[0] === '"' ? token : "null"));
}

async function post(body) {
  let response, text;
  try {
    response = await fetch(data.url, {
      method: "POST", headers: { "Content-Type": "application/json" }, body });
    text = await response.text();
  } catch {
    throw new Error("The server does not answer.");
  }
  if (response.ok) return parse(text);
  let told = `The server answered with the status ${response.status}.`;
  try { told = JSON.parse(text).error || told; } catch { /* It said nothing more. */ }
  throw new Error(told);
}

async function predict(signature, instance) {
  const request = { signature_name: signature, instances: [instance] };
  return (await post(JSON.stringify(request))).predictions[0];
}

// A text in pieces, cut wherever a span begins or ends. Spans are {start, end, …} in characters
// (code points, which an element of a JavaScript string is not); `draw` makes a piece's element.
function pieces(text, spans, draw) {
  const characters = Array.from(text);
  const cuts = new Set([0, characters.length]);
  for (const span of spans) cuts.add(span.start).add(span.end);
  const places = [...cuts].filter((x) => x >= 0 && x <= characters.length).sort((a, b) => a - b);
  const events = places.map((place) => [place, spans.filter((x) => x.start === place)]);
  const parts = [];
  let open = [];
  for (let i = 0; i + 1 < events.length; i++) {
    const [place, begin] = events[i];
    open = open.filter((span) => span.end > place).concat(begin.filter((x) => x.end > place));
    parts.push(draw(characters.slice(place, events[i + 1][0]).join(""), open));
  }
  return parts;
}

function drawPiece(text, spans) {
  const piece = make(spans.some((x) => x.kind === "answer") ? "mark" : "span", text);
  const evidence = spans.find((x) => x.kind === "evidence");
  if (evidence) {
    piece.classList.add("evidence");
    piece.style.setProperty("--e", evidence.probability);
    piece.title = `evidence, ${percent(evidence.probability)}`;
  }
  const token = spans.find((x) => x.kind === "token");
  if (token) piece.dataset.token = token.number;
  return piece;
}

function showText(title, text, spans) {
  const heading = make("h3", title);
  const box = make("div", "", "card text");
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", title);
  box.append(...pieces(text, spans, drawPiece));
  find("more").append(heading, box);
  return box;
}

// The answer, and what tokens look at, where the model tells that; else null.
function askBoth(signature, instance) {
  return Promise.all([predict(signature, instance),
    data.attention ? predict("attention", instance).catch(() => null) : null]);
}

function showOneText(text, spans, attention) {
  if (attention) {
    spans = spans.concat(tokenSpans(attention, 1)[1]);
    showLegend(false, false, attention);
  }
  const box = showText("Text", text, spans);
  if (attention) watchAttention(attention, [box], { documents: [text] });
}

const forms = {
  async answer() {
    const fields = [...document.querySelectorAll("#documents textarea")]
      .filter((x) => x.value !== "");
    const documents = fields.map((x) => x.value);
    const titles = fields.map((x) => x.labels[0].textContent);
    const instance = { question: find("question").value, documents };
    const [answer, attention] = await askBoth("answer", instance);
    return () => showAnswer(instance, titles, answer, attention);
  },
  async classify() {
    const text = find("text").value;
    const [answer, attention] = await askBoth("classify", { text });
    return () => {
      find("answer").append(make("div", answer.label, "best"));
      const best = answer.probabilities.indexOf(Math.max(...answer.probabilities));
      find("more").append(table("", ["probability", "label"], answer.probabilities.map(
        (p, i) => [p, i === best ? answer.label : `label ${i}`])));
      if (attention) showOneText(text, [], attention);
    };
  },
  async keyphrases() {
    const text = find("text").value;
    const [answer, attention] = await askBoth("keyphrases", { text });
    return () => showPhrases(text, answer, attention);
  },
  async other() {
    const answer = await post(find("text").value);
    return () => find("answer").append(make("pre", JSON.stringify(answer, null, 1)));
  },
};

function showPhrases(text, answer, attention) {
  const found = answer.phrases.map((phrase, i) => ({ kind: "answer", phrase,
    start: answer.start[i], end: answer.end[i], probability: answer.probability[i] }))
    .filter((x) => x.phrase !== "");
  find("answer").append(found.length ?
    table("", ["probability", "phrase"], found.map((x) => [x.probability, x.phrase])) :
    make("div", "No key phrase was found.", "best"));
  showOneText(text, found.filter((x) => x.start >= 0), attention);
}

function showAnswer(instance, titles, answer, attention) {
  const told = answer.answer === "" ? "No answer was found." : answer.answer;
  find("answer").append(make("div", told, "best"),
    make("div", `probability ${percent(answer.probability)}`, "quiet"));
  const spans = new Map([[-1, []], ...instance.documents.map((_, i) => [i, []])]);
  const add = (number, span) => spans.has(number) && span.end > span.start &&
    spans.get(number).push(span);
  if (answer.document >= 0) {
    add(answer.document, { kind: "answer", start: answer.start, end: answer.end });
  }
  const evidence = (answer.evidence || []).map((sentence, i) => ({ kind: "evidence", sentence,
    document: answer.evidence_document[i], start: answer.evidence_start[i],
    end: answer.evidence_end[i], probability: answer.evidence_probability[i] }))
    .filter((x) => x.document >= 0);
  for (const sentence of evidence) add(sentence.document, sentence);
  if (attention) {
    tokenSpans(attention, titles.length).forEach((tokens, i) => spans.get(i - 1).push(...tokens));
  }
  showEvidence(evidence, titles);
  showLegend(answer.document >= 0, evidence.length > 0, attention);
  const boxes = attention ? [showText("Question", instance.question, spans.get(-1))] : [];
  instance.documents.forEach((text, i) => {
    boxes.push(showText(titles[i], text, spans.get(i)));
  });
  if (attention) watchAttention(attention, boxes, instance);
}

function showEvidence(evidence, titles) {
  if (!evidence.length) return;
  const best = evidence.slice().sort((a, b) => b.probability - a.probability).slice(0, 10);
  find("more").append(make("h3", "Evidence"), table("The sentences that speak most for the answer",
    ["probability", "sentence", "of"],
    best.map((x) => [x.probability, x.sentence, titles[x.document]])));
}

function showLegend(hasAnswer, hasEvidence, attention) {
  const legend = make("p", "", "quiet");
  if (hasAnswer) legend.append(make("mark", "the answer"), " ");
  if (hasEvidence) {
    const example = make("span", "evidence", "evidence example");
    legend.append(example, ", the stronger the more probable. ");
  }
  if (attention) {
    legend.append("Point at a word, or go to one with Tab and the arrow keys, to see what it " +
      "looks at: the darker the more, orange by a global token.");
  }
  find("more").append(make("h3", "In the text"), legend);
}
"""
