const data = JSON.parse(document.getElementById("data").textContent);
const find = (id) => document.getElementById(id);

function make(tag, text = "", className = "") {
  const element = document.createElement(tag);
  if (text) element.textContent = text;
  if (className) element.className = className;
  return element;
}

// An error shown to the user; `detail` is the server's message.
class Told extends Error {
  constructor(message, detail = "") {
    super(message);
    this.detail = detail;
  }
}

// Requests to the server.

const MEANINGS = [
  [400, "The model can't use this text."],
  [401, "This server asks for a password: reload the page."],
  [403, "This server does not answer from here."],
  [404, "This model is no longer served here: reload the page."],
  [408, "It took too long."],
  [413, "This is more text than the server reads at once: shorten it."],
  [421, "This server does not answer to this name."],
  [429, "The server is busy. Try again in a moment."],
  [503, "The server is busy. Try again in a moment."],
  [504, "It took too long."],
];

// TensorFlow Serving's JSON may contain NaN and Infinity, which JSON.parse rejects.
function parse(text) {
  return JSON.parse(
    text.replace(/"(?:[^"\\]|\\.)*"|-?(?:NaN|Infinity)/g, (token) =>
      token[0] === '"' ? token : "null",
    ),
  );
}

async function post(body, signal) {
  let response, text;
  try {
    const headers = { "Content-Type": "application/json" };
    response = await fetch(data.url, { method: "POST", headers, body, signal });
    text = await response.text();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Told("The server does not answer. Is it still running?");
  }
  if (response.ok) return parse(text);
  let said = `The status ${response.status}.`;
  try {
    said = JSON.parse(text).error || said;
  } catch {
    // The response has no details.
  }
  const known = MEANINGS.find(([status]) => status === response.status);
  if (data.kind === "other" && response.status === 400) throw new Told(said);
  throw new Told(known ? known[1] : "The server failed.", said);
}

async function predict(signature, instance, signal) {
  const request = { signature_name: signature, instances: [instance] };
  return (await post(JSON.stringify(request), signal)).predictions[0];
}

// The answer, and its attention if the model returns it, else null.
function predictBoth(signature, instance, signal) {
  const attention = data.attention
    ? predict("attention", instance, signal).catch(() => null)
    : null;
  return Promise.all([predict(signature, instance, signal), attention]);
}

// Texts with marks in them.

// A text in pieces, cut wherever a span begins or ends. Spans are {start, end, …} in characters
// (code points, which an element of a JavaScript string is not); `draw` makes a piece's element.
function pieces(text, spans, draw) {
  const characters = Array.from(text);
  const cuts = new Set([0, characters.length]);
  const starting = new Map();
  for (const span of spans) {
    cuts.add(span.start).add(span.end);
    if (!starting.has(span.start)) starting.set(span.start, []);
    starting.get(span.start).push(span);
  }
  const places = [...cuts].filter((x) => x >= 0 && x <= characters.length);
  places.sort((a, b) => a - b);
  const parts = [];
  let open = [];
  for (let i = 0; i + 1 < places.length; i++) {
    const place = places[i];
    open = open.concat(starting.get(place) || []).filter((span) => span.end > place);
    parts.push(draw(characters.slice(place, places[i + 1]).join(""), open));
  }
  return parts;
}

function drawPiece(text, spans) {
  const piece = make(spans.some((x) => x.kind === "answer") ? "mark" : "span", text);
  const evidence = spans.find((x) => x.kind === "evidence");
  if (evidence) {
    piece.classList.add("evidence");
    piece.dataset.sentence = evidence.number;
    piece.style.setProperty("--e", evidence.probability);
    piece.title = `evidence, ${percent(evidence.probability)}`;
  }
  const token = spans.find((x) => x.kind === "token");
  if (token) piece.dataset.token = token.number;
  return piece;
}

// Scrolls within the text's own box, and to that box.
function scrollInBox(piece) {
  const box = piece.closest(".text");
  box.closest("details").open = true;
  const offset = piece.getBoundingClientRect().top - box.getBoundingClientRect().top;
  box.scrollTop += offset - box.clientHeight / 3;
}

function goTo(found) {
  for (const piece of document.querySelectorAll(".here")) piece.classList.remove("here");
  for (const piece of found) piece.classList.add("here");
  scrollInBox(found[0]);
  found[0].scrollIntoView({ block: "nearest" });
  found[0].closest(".text").focus({ preventScroll: true });
}

// Shows texts with their spans and, beside them, what their tokens attend to.
// sources: list of { title, text, spans, isOpen }.
function showTexts(sources, attention, instance) {
  const reading = make("div", "", "reading");
  const column = make("div");
  const boxes = sources.map(({ title, text, spans, isOpen }) => {
    const outer = make("details");
    outer.open = isOpen;
    const box = make("div", "", "card text");
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", title);
    box.tabIndex = 0;
    box.dir = "auto";
    for (const piece of pieces(text, spans, drawPiece)) box.append(piece);
    outer.append(make("summary", title), box);
    column.append(outer);
    return box;
  });
  reading.append(column);
  if (attention) watchAttention(attention, boxes, instance, reading);
  find("more").append(reading);
}

// `marked` is what the marks are, or "".
function showLegend(marked, hasEvidence, attention) {
  const legend = make("p", "", "quiet");
  if (marked) legend.append(make("mark", marked), " ");
  if (hasEvidence) {
    legend.append(
      make("span", "evidence", "evidence strong"),
      " (a stronger color means a higher probability). ",
    );
  }
  if (attention) {
    legend.append(
      "Point at a word, or move to one with Tab and the arrow keys, to see what it attends to; " +
        "click or press Enter to pin it. Stronger colors mean more attention; ",
      make("span", "orange", "attended-global example"),
      ": through a global token.",
    );
  }
  if (legend.childNodes.length) find("more").append(make("h3", "In the text"), legend);
}

// What tokens attend to.

// Windows repeat tokens: of each token the number of the first one at its characters.
function firstAtPlaces(attention) {
  const known = new Map();
  return attention.document.map((number, i) => {
    const place = [number, attention.start[i], attention.end[i]].join();
    if (!known.has(place)) known.set(place, i);
    return known.get(place);
  });
}

// The tokens of each text as spans for `pieces`: those of the question, then of each document.
function tokenSpans(attention, numDocuments) {
  const spans = Array.from({ length: numDocuments + 1 }, () => []);
  if (!attention) return spans;
  firstAtPlaces(attention).forEach((first, i) => {
    const [start, end] = [attention.start[i], attention.end[i]];
    if (first === i && attention.document[i] >= -1 && end > start) {
      spans[attention.document[i] + 1].push({ kind: "token", number: i, start, end });
    }
  });
  return spans;
}

function choose(name, values, titles) {
  const label = make("label", `${name} `);
  const select = make("select");
  select.id = name;
  values.forEach((value, i) => {
    const option = make("option", titles[i]);
    option.value = value;
    select.append(option);
  });
  label.append(select);
  return { label, select };
}

// Menus for the layer and the head, if the export says how many there are.
function choices(reading) {
  const sizes = data.attention;
  if (!sizes.layers) return null;
  const count = (size) => Array.from({ length: size }, (_, i) => String(i));
  const layer = choose("layer", count(sizes.layers), count(sizes.layers));
  layer.select.value = sizes.layer;
  const heads = count(sizes.heads);
  const head = choose("head", ["mean", ...heads], ["mean of all", ...heads]);
  const row = make("div");
  row.id = "choices";
  row.append(layer.label, head.label);
  find("more").append(row);
  return { layer: layer.select, head: head.select };
}

function watchAttention(attention, boxes, instance, reading) {
  const told = make("p");
  told.id = "told";
  told.setAttribute("aria-live", "polite");
  const table = make("table");
  table.id = "seen";
  table.hidden = true;
  table.createCaption();
  const head = table.createTHead().insertRow();
  for (const title of ["token", "share"]) {
    head.append(make("th", title));
    head.lastChild.scope = "col";
  }
  table.createTBody();
  const readout = make("section");
  readout.id = "readout";
  readout.setAttribute("aria-label", "What the word attends to");
  readout.append(told, table);
  reading.append(readout);

  const numTokens = attention.document.length;
  const firsts = firstAtPlaces(attention);
  const characters = new Map(
    [[-1, instance.question], ...instance.documents.entries()].map(([number, text]) => [
      number,
      Array.from(text || ""),
    ]),
  );
  const chosen = choices(reading);
  const asked = new Map(); // Responses of the server, by token and layer.
  const kinds = ["document", "start", "end"];
  const placeOf = (key) =>
    key < numTokens
      ? kinds.map((kind) => attention[kind][key])
      : kinds.map((kind) => attention[`global_${kind}`][key - numTokens]);

  function nameOf(key) {
    const [number, start, end] = placeOf(key);
    const isLong = key < numTokens;
    if (!characters.has(number)) {
      return isLong ? "a special token" : `global token ${key - numTokens}`;
    }
    const found = characters.get(number).slice(start, end);
    // Isolated, so that right-to-left words do not change the order around them.
    const short = `“\u2068${found.slice(0, 40).join("")}${found.length > 40 ? "…" : ""}\u2069”`;
    return isLong ? short : `the global token of ${short}`;
  }
  function elementsOf(key) {
    if (key < numTokens) return view.elementsOf.get(firsts[key]) || [];
    const [number, start, end] = placeOf(key);
    const within = (i) =>
      attention.document[i] === number && attention.start[i] >= start && attention.end[i] <= end;
    return [...view.elementsOf].flatMap(([i, elements]) => (within(i) ? elements : []));
  }
  function item([key, share]) {
    const name = nameOf(key);
    const kind = key < numTokens ? "attended" : "attended-global";
    return { share, kind, elements: elementsOf(key), name, cells: [name, percent(share)] };
  }
  function isOther() {
    return (
      chosen !== null &&
      (chosen.head.value !== "mean" || chosen.layer.value !== String(data.attention.layer))
    );
  }
  async function fromServer(number) {
    const layer = Number(chosen.layer.value);
    const wanted = [number, layer].join();
    if (!asked.has(wanted)) {
      const [of, start, end] = placeOf(number);
      const place = data.kind === "answer" ? { document: of, start, end } : { start, end };
      const { question, documents } = instance;
      const texts = data.kind === "answer" ? { question, documents } : { text: documents[0] };
      lookup?.abort(); // Only one request at a time.
      lookup = new AbortController();
      const inputs = { ...texts, ...place, layer };
      const answer = predict("attention_of_span", inputs, lookup.signal);
      answer.catch(() => asked.delete(wanted));
      asked.set(wanted, answer);
    }
    const heads = (await asked.get(wanted)).attention;
    const head = chosen.head.value;
    const shares =
      head === "mean"
        ? heads[0].map((_, key) => heads.reduce((sum, one) => sum + one[key], 0) / heads.length)
        : heads[Number(head)];
    const pairs = [...shares.entries()].filter(([, share]) => share > 0);
    pairs.sort((a, b) => b[1] - a[1]);
    return pairs.slice(0, 24).map(item);
  }
  function look(number) {
    if (isOther()) return fromServer(number);
    return attention.attended[number]
      .map((key, i) => [key, attention.attention[number][i]])
      .filter(([key]) => key >= 0)
      .map(item);
  }

  const view = attentionView({ boxes, nameOf, look, isSlow: isOther, told, table });
  if (chosen) {
    for (const select of Object.values(chosen)) select.addEventListener("change", view.draw);
  }
  view.draw();
}

// Answers.

function meter(probability, label) {
  const cell = make("td", "", "number");
  const bar = make("meter");
  bar.value = probability;
  bar.setAttribute("aria-label", label);
  cell.append(bar, percent(probability));
  return cell;
}

// Rows of [probability, content, …]: texts, or elements.
function table(caption, titles, rows) {
  const result = make("table");
  if (caption) result.append(make("caption", caption));
  const head = result.createTHead().insertRow();
  for (const title of titles) head.append(make("th", title));
  for (const cell of head.cells) cell.scope = "col";
  const body = result.createTBody();
  for (const [probability, ...contents] of rows) {
    const row = body.insertRow();
    const name = contents[0].textContent || contents[0];
    row.append(meter(probability, `${titles[0]} of ${name}`));
    for (const content of contents) {
      const cell = make("td", "", /^Document \d+$/.test(content) ? "short" : "");
      cell.dir = "auto";
      cell.append(content);
      row.append(cell);
    }
  }
  return result;
}

function showBest(text) {
  const best = make("div", text, "best");
  best.dir = "auto";
  find("answer").append(best);
}

function link(text, found) {
  const button = make("button", text, "link");
  button.type = "button";
  button.addEventListener("click", () => goTo(found()));
  return button;
}

function showOneText(text, spans, attention) {
  const all = spans.concat(tokenSpans(attention, 1)[1]);
  if (attention) showLegend(spans.length ? "the answer" : "", false, attention);
  const source = { title: "Text", text, spans: all, isOpen: true };
  showTexts([source], attention, { documents: [text] });
}

function showLabels(text, answer, attention) {
  showBest(answer.label);
  const rows = answer.probabilities.map((share, i) => [share, data.labels[i] ?? String(i)]);
  rows.sort((a, b) => b[0] - a[0]);
  find("answer").append(table("", ["probability", "label"], rows));
  if (attention) showOneText(text, [], attention);
}

function showPhrases(text, answer, attention) {
  const found = answer.phrases
    .map((phrase, i) => ({
      kind: "answer",
      phrase,
      start: answer.start[i],
      end: answer.end[i],
      probability: answer.probability[i],
    }))
    .filter((x) => x.phrase !== "");
  if (found.length) {
    const rows = found.map((x) => [x.probability, x.phrase]);
    find("answer").append(table("", ["probability", "phrase"], rows));
  } else {
    showBest("No key phrase was found.");
  }
  const marked = found.filter((x) => x.start >= 0);
  showOneText(text, marked, attention);
}

const LEAST_EVIDENCE = 0.02; // Less probable sentences are not shown.
function evidenceOf(answer) {
  return (answer.evidence || [])
    .map((sentence, i) => ({
      kind: "evidence",
      number: i,
      sentence,
      document: answer.evidence_document[i],
      start: answer.evidence_start[i],
      end: answer.evidence_end[i],
      probability: answer.evidence_probability[i],
    }))
    .filter((x) => x.document >= 0 && x.probability >= LEAST_EVIDENCE);
}

function showAnswer(instance, titles, answer, attention) {
  showBest(answer.answer === "" ? "No answer was found." : answer.answer);
  const line = make("div", `probability ${percent(answer.probability)}`, "quiet");
  find("answer").append(line);
  const spans = new Map([[-1, []], ...instance.documents.map((_, i) => [i, []])]);
  const add = (number, span) =>
    spans.has(number) && span.end > span.start && spans.get(number).push(span);
  const isInText = answer.document >= 0;
  if (isInText) {
    add(answer.document, { kind: "answer", start: answer.start, end: answer.end });
    const where = link(`Show it in ${titles[answer.document]}`, () => [
      ...document.querySelectorAll("#more .text mark"),
    ]);
    line.append(" · ", where);
  }
  const evidence = evidenceOf(answer);
  for (const sentence of evidence) add(sentence.document, sentence);
  const tokens = tokenSpans(attention, titles.length);
  for (const [i, found] of tokens.entries()) spans.set(i - 1, spans.get(i - 1).concat(found));
  showEvidence(evidence, titles);
  showLegend(isInText ? "the answer" : "", evidence.length > 0, attention);
  const sources = instance.documents.map((text, i) => ({
    title: titles[i],
    text,
    spans: spans.get(i),
    isOpen: !isInText || i === answer.document,
  }));
  if (attention) {
    const question = { title: "Question", text: instance.question, spans: spans.get(-1) };
    sources.unshift({ ...question, isOpen: true });
  }
  showTexts(sources, attention, instance);
}

function showEvidence(evidence, titles) {
  if (!evidence.length) return;
  const best = evidence.toSorted((a, b) => b.probability - a.probability).slice(0, 10);
  const rows = best.map((x) => [
    x.probability,
    link(x.sentence, () => [...document.querySelectorAll(`[data-sentence="${x.number}"]`)]),
    ...(titles.length > 1 ? [titles[x.document]] : []),
  ]);
  const caption = "The sentences that best support the answer";
  const titlesOfTable = ["probability", "sentence", ...(titles.length > 1 ? ["in"] : [])];
  find("more").append(make("h3", "Evidence"), table(caption, titlesOfTable, rows));
}

// Where a text mentions some words, ignoring case: spans for `pieces`. Letters without case need no
// space around a word: Chinese has none, and Hebrew joins the article.
function mentions(text, words) {
  const spaced = words.trim().split(/\s+/u);
  const literal = spaced.map((x) => x.replace(/[\\^$.*+?()[\]{}|/]/gu, "\\$&")).join("\\s+");
  const inWord = "[\\p{Lu}\\p{Ll}\\p{Lt}\\p{M}\\p{N}]";
  const found = text.matchAll(new RegExp(`(?<!${inWord})${literal}(?!${inWord})`, "giu"));
  const place = (index) => Array.from(text.slice(0, index)).length;
  return [...found].map((x) => ({
    kind: "answer",
    start: place(x.index),
    end: place(x.index + x[0].length),
  }));
}

function showChoice(documents, titles, answer) {
  showBest(answer.answer);
  const rows = answer.probabilities.map(([candidate, share]) => [share, candidate]);
  rows.sort((a, b) => b[0] - a[0]);
  find("answer").append(table("", ["probability", "candidate"], rows));
  const spans = documents.map((text) => mentions(text, answer.answer));
  const isMentioned = spans.some((x) => x.length);
  showLegend(isMentioned ? "mentions of the answer" : "", false, null);
  const sources = documents.map((text, i) => ({
    title: titles[i],
    text,
    spans: spans[i],
    isOpen: !isMentioned || spans[i].length > 0,
  }));
  showTexts(sources, null, { documents });
}

// The form: each kind of model has a request and a function that shows its answer.

function given() {
  if (!find("documents")) return { text: find("text").value };
  const question = find("question").value;
  const documents = documentFields().map((x) => x.value);
  return inOrder({ question, documents, candidates: find("candidates")?.value.split("\n") });
}

// The question, and the documents with their titles; blank documents are left out.
function asked() {
  const fields = documentFields().filter((x) => x.value.trim() !== "");
  const question = find("question").value;
  if (question.trim() === "") throw new Told("Write a question.");
  if (!fields.length) throw new Told("Paste a document to ask about.");
  const titles = fields.map((x) => x.labels[0].textContent);
  return { question, documents: fields.map((x) => x.value), titles };
}

function textOf(told) {
  const { text } = given();
  if (text.trim() === "") throw new Told(told);
  return text;
}

const forms = {
  async answer(signal) {
    const { titles, ...instance } = asked();
    const [answer, attention] = await predictBoth("answer", instance, signal);
    return () => showAnswer(instance, titles, answer, attention);
  },
  async choose(signal) {
    const { titles, ...texts } = asked();
    const candidates = given().candidates.filter((x) => x.trim() !== "");
    if (!candidates.length) throw new Told("Write the candidates, one on each line.");
    const values = { ...texts, candidates };
    const raw = Object.entries(data.fields).map(([name, field]) => [field, values[name]]);
    const answer = await predict("examples", Object.fromEntries(raw), signal);
    return () => showChoice(texts.documents, titles, answer);
  },
  async classify(signal) {
    const text = textOf("Paste a text to classify.");
    const [answer, attention] = await predictBoth("classify", { text }, signal);
    return () => showLabels(text, answer, attention);
  },
  async keyphrases(signal) {
    const text = textOf("Paste a text with key phrases.");
    const [answer, attention] = await predictBoth("keyphrases", { text }, signal);
    return () => showPhrases(text, answer, attention);
  },
  async other(signal) {
    const answer = await post(textOf("Write a request."), signal);
    return () => find("answer").append(make("pre", JSON.stringify(answer, null, 1)));
  },
};

function documentFields() {
  return [...document.querySelectorAll("#documents textarea")];
}

function numberDocuments() {
  const fields = documentFields();
  fields.forEach((field, i) => {
    field.id = `document-${i + 1}`;
    const label = field.parentElement.querySelector("label");
    label.textContent = `Document ${i + 1}`;
    label.htmlFor = field.id;
    const remove = field.parentElement.querySelector("button");
    remove.hidden = fields.length === 1;
    remove.setAttribute("aria-label", `Remove document ${i + 1}`);
  });
}

function addDocument(value = "") {
  const box = make("div");
  const label = make("label");
  const text = make("textarea");
  text.rows = find("candidates") ? 3 : 6; // Such questions have many short documents.
  text.dir = "auto";
  text.value = value;
  const remove = make("button", "Remove", "second small");
  remove.type = "button";
  remove.addEventListener("click", () => {
    const next = box.nextElementSibling || box.previousElementSibling;
    box.remove();
    numberDocuments();
    keep();
    next.querySelector("textarea").focus();
  });
  box.append(label, remove, text);
  find("documents").append(box);
  numberDocuments();
  return text;
}

// An example, in the format of `given`.
function inOrder({ text, question, documents, candidates }) {
  if (!find("documents")) return { text };
  return find("candidates") ? { question, documents, candidates } : { question, documents };
}

function fillIn(values) {
  if (!find("documents")) {
    find("text").value = values.text;
  } else {
    find("question").value = values.question;
    if (find("candidates")) find("candidates").value = values.candidates.join("\n");
    find("documents").replaceChildren();
    for (const text of values.documents.length ? values.documents : [""]) addDocument(text);
  }
  keep();
}

// The contents of the form survive a reload, in this tab only.
const PLACE = `etcmodel ${data.kind} ${data.url}`;
function keep() {
  try {
    sessionStorage.setItem(PLACE, JSON.stringify(given()));
  } catch {
    forget(); // The storage is full or not available.
  }
}
function forget() {
  try {
    sessionStorage.removeItem(PLACE);
  } catch {
    // Storage is not available.
  }
}
function restore() {
  try {
    const kept = JSON.parse(sessionStorage.getItem(PLACE));
    if (kept) fillIn(kept);
  } catch {
    forget();
  }
}

const MAX_FILE = 4 << 20;
async function readFile(file) {
  if (file.size > MAX_FILE) throw new Told(`${file.name} is larger than 4 MB.`);
  const bytes = await file.arrayBuffer();
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    if (!text.includes("\0")) return text;
  } catch {
    // It is not UTF-8.
  }
  throw new Told(`${file.name} is no plain text (UTF-8). Save it as text, and try again.`);
}

async function takeFiles(files) {
  find("error").hidden = true;
  if (!find("documents") && files.length > 1) {
    showError(new Told("Drop one file: this model reads one text."));
    return;
  }
  for (const { value, reason } of await Promise.allSettled([...files].map(readFile))) {
    if (reason) {
      showError(reason);
    } else if (!find("documents")) {
      find("text").value = value;
    } else {
      const empty = documentFields().find((x) => x.value === "");
      (empty || addDocument()).value = value;
    }
  }
  keep();
}

// Waiting.

let asking = null; // Aborts the request in progress,
let lookup = null; // and the one for a word's attention.

function showError(error) {
  find("error-text").textContent = error.message;
  const detail = error.detail || "";
  find("error-more").hidden = detail === "";
  find("error-more").open = false;
  find("error-more").lastElementChild.textContent = detail;
  find("error").hidden = false;
}

function startWaiting() {
  const began = performance.now();
  const shown = () => {
    find("seconds").textContent = `${Math.floor((performance.now() - began) / 1000)} s`;
  };
  shown();
  const { question, text } = given();
  find("waiting-for").textContent = data.kind === "other" ? "" : (question ?? text.slice(0, 200));
  find("waiting").hidden = false;
  find("status").textContent = "Reading…";
  find("waiting").scrollIntoView({ block: "nearest" });
  return setInterval(shown, 1000);
}

function forgetAnswer() {
  lookup?.abort();
  find("error").hidden = true;
  find("result").hidden = true;
  document.body.classList.remove("explains");
  for (const id of ["answer", "more"]) find(id).replaceChildren();
}

function showResult(show, question) {
  find("asked").textContent = question || "";
  find("asked").hidden = !question;
  find("result").hidden = false;
  show();
  document.body.classList.toggle("explains", find("readout") !== null);
  const mark = document.querySelector("#more .text mark");
  if (mark) scrollInBox(mark);
  find("result").scrollIntoView({ block: "start" });
  find("result").focus({ preventScroll: true });
}

async function send(event) {
  event.preventDefault();
  if (asking) asking.abort();
  const own = new AbortController();
  asking = own;
  const button = find("send");
  button.disabled = true;
  find("form").setAttribute("aria-busy", "true");
  forgetAnswer();
  const timer = startWaiting();
  const { question } = given();
  try {
    const show = await forms[data.kind](own.signal);
    if (asking === own) showResult(show, question);
  } catch (error) {
    if (asking === own && error.name !== "AbortError") {
      forgetAnswer();
      const told = error instanceof Told;
      showError(told ? error : new Told("The page can't read the answer.", String(error)));
    }
  } finally {
    clearInterval(timer);
    if (asking === own) {
      asking = null;
      button.disabled = false;
      find("form").removeAttribute("aria-busy");
      const focused = document.activeElement;
      if (focused === document.body || find("waiting").contains(focused)) button.focus();
      find("waiting").hidden = true;
      find("status").textContent = "";
    }
  }
}

const form = find("form");
form.addEventListener("submit", send);
form.addEventListener("input", keep);
form.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
});
document.addEventListener("dragover", (event) => {
  if (!event.dataTransfer.types.includes("Files")) return;
  event.preventDefault();
  form.classList.add("dropping");
});
document.addEventListener("dragleave", (event) => {
  if (event.relatedTarget === null) form.classList.remove("dropping"); // Left the page.
});
document.addEventListener("drop", (event) => {
  if (!event.dataTransfer.files.length) return;
  event.preventDefault();
  form.classList.remove("dropping");
  takeFiles(event.dataTransfer.files);
});
find("cancel").addEventListener("click", () => {
  asking.abort();
});
find("open").addEventListener("click", () => find("files").click());
find("files").addEventListener("change", () => {
  takeFiles(find("files").files);
  find("files").value = "";
});
if (find("documents")) {
  find("add").addEventListener("click", () => {
    addDocument().focus();
    keep();
  });
  addDocument();
}
const EMPTY = JSON.stringify(given());
if (find("example") && data.examples.length) {
  let next = 0;
  find("example").hidden = false;
  find("example").addEventListener("click", () => {
    const typed = JSON.stringify(given());
    const isOwn =
      typed !== EMPTY && data.examples.every((x) => typed !== JSON.stringify(inOrder(x)));
    if (isOwn && !confirm("Replace the contents of the form with an example?")) return;
    fillIn(data.examples[next++ % data.examples.length]);
  });
}
restore();
