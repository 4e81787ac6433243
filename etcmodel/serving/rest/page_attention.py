"""The part of the page's script that shows what a token looks at."""

__all__ = ["SCRIPT"]

SCRIPT = """
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
  firstAtPlaces(attention).forEach((first, i) => {
    const [start, end] = [attention.start[i], attention.end[i]];
    if (first === i && attention.document[i] >= -1 && end > start) {
      spans[attention.document[i] + 1].push({ kind: "token", number: i, start, end });
    }
  });
  return spans;
}

// Pointing at a token, or going to it by the keyboard, colors what it looks at.
function watchAttention(attention, boxes, instance) {
  const told = make("p");
  told.id = "told";
  told.setAttribute("aria-live", "polite");
  find("more").append(told);
  const numTokens = attention.document.length;
  const firsts = firstAtPlaces(attention);
  const byToken = new Map();
  for (const box of boxes) {
    for (const piece of box.querySelectorAll("[data-token]")) {
      const number = Number(piece.dataset.token);
      byToken.set(number, [...(byToken.get(number) || []), piece]);
      piece.tabIndex = -1;
    }
  }
  const order = [...byToken.keys()];
  const all = [...byToken.values()].flat();
  if (order.length) byToken.get(order[0])[0].tabIndex = 0;

  function isWithin(number, global) {
    return attention.document[number] === attention.global_document[global] &&
      attention.start[number] >= attention.global_start[global] &&
      attention.end[number] <= attention.global_end[global];
  }
  function nameOf(key) {
    const global = key - numTokens;
    const [places, i] = global < 0 ? [["document", "start", "end"], key] :
      [["global_document", "global_start", "global_end"], global];
    const [number, start, end] = places.map((name) => attention[name][i]);
    const text = number === -1 ? instance.question : instance.documents[number];
    if (text === undefined) return global < 0 ? "a special token" : `global token ${global}`;
    const characters = Array.from(text).slice(start, end);
    const found = characters.slice(0, 40).join("") + (characters.length > 40 ? "…" : "");
    return global < 0 ? `“${found}”` : `the global token of “${found}”`;
  }
  function color(key, share) {
    const numbers = key < numTokens ? [firsts[key]] :
      order.filter((x) => isWithin(x, key - numTokens));
    for (const piece of numbers.flatMap((number) => byToken.get(number) || [])) {
      if (piece.classList.contains("seen")) continue;
      piece.classList.add(key < numTokens ? "seen" : "seen-global");
      piece.style.setProperty("--p", share);
    }
  }
  function show(number) {
    for (const piece of all) piece.classList.remove("seen", "seen-global", "query");
    const seen = attention.attended[number].map((key, i) => [key, attention.attention[number][i]])
      .filter(([key]) => key >= 0);
    // Long tokens first: what a token itself gets hides what its sentence gets.
    for (const isLong of [true, false]) {
      for (const [key, value] of seen) {
        if ((key < numTokens) === isLong) color(key, value / Math.max(seen[0][1], 1e-30));
      }
    }
    for (const piece of byToken.get(number)) piece.classList.add("query");
    const most = seen.slice(0, 3).map(([key, value]) => `${nameOf(key)} ${percent(value)}`);
    told.textContent = `${nameOf(number)} looks at ${most.join(", ") || "nothing"}`;
  }
  function numberAt(event) {
    const piece = event.target.closest("[data-token]");
    return piece ? Number(piece.dataset.token) : null;
  }
  const steps = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 };
  for (const box of boxes) {
    for (const kind of ["mouseover", "focusin", "click"]) {
      box.addEventListener(kind, (event) => {
        if (numberAt(event) !== null) show(numberAt(event));
      });
    }
    box.addEventListener("keydown", (event) => {
      const number = numberAt(event);
      if (number === null || !(event.key in steps)) return;
      const place = order.indexOf(number) + steps[event.key];
      const next = byToken.get(order[Math.min(order.length - 1, Math.max(0, place))])[0];
      event.target.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
      event.preventDefault();
    });
  }
}
"""
