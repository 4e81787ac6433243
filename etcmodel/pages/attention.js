"use strict";

function percent(share) {
  return `${(100 * share).toFixed(1)} %`;
}

// -1 in right-to-left text, where the left arrow moves forward.
function directionOf(box, key) {
  const isSideways = key === "ArrowLeft" || key === "ArrowRight";
  return isSideways && getComputedStyle(box).direction === "rtl" ? -1 : 1;
}

// Shows what the tokens on a page attend to. Choosing a token by pointing, tapping or the keyboard
// (Tab, then the arrow keys) colors the tokens that it attends to, and lists them in a line and a
// table.
//
// boxes: elements whose children with `data-token` are the tokens, by number; a token may consist
//   of several elements if other markup cuts it.
// nameOf(number): the name of a token.
// look(number): what it attends to, strongest first, or a promise of that: a list of
//   { share, kind, elements, name, cells }, with the class and the elements to color and the cells
//   of a table row; null if it is not known.
// overall(): { found, caption } to show for any chosen token, or null.
// isSlow(): whether `look` takes long; then pointing at a token does not choose it.
// told, table: the elements of the line and of the table.
//
// Returns { draw, elementsOf }: a function that redraws after another choice, and a Map from a
// token's number to its elements.
function attentionView({ boxes, nameOf, look, overall, isSlow, told, table }) {
  const elementsOf = new Map();
  const numbersOf = new Map(); // For each box, in reading order.
  for (const box of boxes) {
    for (const element of box.querySelectorAll("[data-token]")) {
      const number = Number(element.dataset.token);
      if (!numbersOf.has(box)) numbersOf.set(box, []);
      const isFirst = numbersOf.get(box).length === 0;
      if (!elementsOf.has(number)) {
        elementsOf.set(number, []);
        numbersOf.get(box).push(number);
      }
      elementsOf.get(number).push(element);
      element.setAttribute("role", "button");
      element.setAttribute("tabindex", isFirst ? "0" : "-1");
    }
  }
  let current = null; // The number of the token shown.
  let kept = false; // Whether it stays when the pointer moves away.
  let colored = new Set();
  let outlined = []; // The elements of the token shown.
  let numDrawn = 0; // Results for an earlier choice are dropped.

  function color(found) {
    for (const element of colored) {
      element.classList.remove("attended", "attended-global", "attended-below");
    }
    colored = new Set();
    const most = Math.max(...found.slice(0, 1).map((x) => Math.abs(x.share)), 1e-30);
    // Global tokens last: a token's own color hides that of its sentence.
    const isLast = (x) => x.kind === "attended-global";
    for (const item of [...found.filter((x) => !isLast(x)), ...found.filter(isLast)]) {
      for (const element of item.elements) {
        if (colored.has(element)) continue;
        colored.add(element);
        element.classList.add(item.kind);
        element.style.setProperty("--p", Math.abs(item.share) / most);
      }
    }
  }

  function fill(found, caption) {
    table.hidden = found.length === 0;
    table.caption.textContent = caption;
    const rows = found.slice(0, 12).map((item) => {
      const row = document.createElement("tr");
      for (const text of item.cells) {
        const cell = row.appendChild(document.createElement("td"));
        cell.dir = "auto";
        cell.textContent = text;
      }
      return row;
    });
    table.tBodies[0].replaceChildren(...rows);
  }

  function show(found, caption, line) {
    color(found);
    fill(found, caption);
    told.textContent = line;
  }

  function showToken(found) {
    const name = nameOf(current);
    if (found === null) {
      show([], "", `${name}: what it attends to is not known here`);
      return;
    }
    const most = found.slice(0, 3).map((x) => `${x.name} ${percent(x.share)}`);
    const line = `${name} attends to ${most.join(", ") || "nothing"}`;
    show(found, `What ${name} attends to`, line);
  }

  function draw() {
    const drawn = ++numDrawn;
    for (const element of outlined) {
      element.classList.remove("query");
      element.removeAttribute("aria-pressed");
    }
    outlined = [];
    const whole = overall?.();
    if (whole) {
      show(whole.found, whole.caption, "");
      return;
    }
    if (current === null) {
      show([], "", "");
      return;
    }
    outlined = elementsOf.get(current);
    for (const element of outlined) {
      element.classList.add("query");
      if (kept) element.setAttribute("aria-pressed", "true");
    }
    const found = look(current);
    if (found === null || Array.isArray(found)) {
      showToken(found);
      return;
    }
    show([], "", `${nameOf(current)}: asking the model…`);
    found
      .catch(() => null)
      .then((answer) => {
        if (drawn === numDrawn) showToken(answer);
      });
  }

  function point(number) {
    if (number === null || kept || number === current) return;
    if (isSlow?.()) {
      current = null;
      draw();
      told.textContent = `Click ${nameOf(number)}, or press Enter, to ask the model about it`;
      return;
    }
    current = number;
    draw();
  }

  function keep(number) {
    kept = !(kept && current === number);
    current = number;
    draw();
  }

  function numberAt(event) {
    const element = event.target.closest("[data-token]");
    return element ? Number(element.dataset.token) : null;
  }

  function go(box, number) {
    for (const element of box.querySelectorAll('[tabindex="0"]')) {
      element.setAttribute("tabindex", "-1");
    }
    elementsOf.get(number)[0].setAttribute("tabindex", "0");
    elementsOf.get(number)[0].focus();
  }

  const steps = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 };
  for (const [box, numbers] of numbersOf) {
    box.addEventListener("mouseover", (event) => point(numberAt(event)));
    box.addEventListener("focusin", (event) => point(numberAt(event)));
    box.addEventListener("click", (event) => {
      if (numberAt(event) !== null) keep(numberAt(event));
    });
    box.addEventListener("keydown", (event) => {
      const number = numberAt(event);
      if (number === null || event.altKey || event.ctrlKey || event.metaKey) return;
      if (event.key in steps) {
        const place = numbers.indexOf(number) + steps[event.key] * directionOf(box, event.key);
        go(box, numbers[Math.min(numbers.length - 1, Math.max(0, place))]);
      } else if (event.key === "Enter" || event.key === " ") {
        keep(number);
      } else if (event.key === "Escape") {
        kept = false;
        current = null;
        draw();
      } else {
        return;
      }
      event.preventDefault();
    });
  }
  return { draw, elementsOf };
}
