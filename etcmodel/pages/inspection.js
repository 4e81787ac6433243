const data = JSON.parse(document.getElementById("data").textContent);
const numLong = data.long.length;
const words = data.long.concat(data.global);
const find = (id) => document.getElementById(id);

function choice(id) {
  return find(id) ? Number(find(id).value) : null;
}
function positionOf(number) {
  return number < numLong ? number : number - numLong;
}
function sideOf(number) {
  return data.sides[number < numLong ? 0 : 1];
}
function nameOf(number) {
  return `\u2068${words[number]}\u2069 (${sideOf(number)} ${positionOf(number)})`;
}
function item(number, share, kind) {
  return {
    share,
    kind,
    elements: view.elementsOf.get(number),
    name: nameOf(number),
    cells: [words[number], sideOf(number), positionOf(number), share.toPrecision(3)],
  };
}

function attendedBy(number) {
  const side = number < numLong ? "long" : "global";
  const rows = data.attention.find(
    (x) => x.layer === choice("layer") && x.head === choice("head") && x.side === side,
  );
  const row = rows ? rows.queries.indexOf(positionOf(number)) : -1;
  if (row < 0) return null;
  const found = [];
  for (let i = rows.starts[row]; i < rows.starts[row + 1]; i++) {
    const kind = rows.keys[i] < numLong ? "attended" : "attended-global";
    found.push(item(rows.keys[i], rows.probabilities[i], kind));
  }
  return found;
}

function attributions() {
  if (find("view") === null || find("view").value !== "attributions") return null;
  const found = data.attributions.map((value, number) =>
    item(number, value, value < 0 ? "attended-below" : "attended"),
  );
  found.sort((a, b) => Math.abs(b.share) - Math.abs(a.share));
  const caption = "Integrated gradients: what raises the score (blue) or lowers it (orange)";
  return { found, caption };
}

const view = attentionView({
  boxes: [find("long"), find("global")],
  nameOf,
  look: attendedBy,
  overall: attributions,
  told: find("told"),
  table: find("seen"),
});
// What the hint says is of attention alone.
function draw() {
  find("hint").hidden = attributions() !== null;
  view.draw();
}
for (const id of ["layer", "head", "view"]) {
  if (find(id)) find(id).addEventListener("change", draw);
}
draw();
