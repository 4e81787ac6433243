// Runs the script of a page on a stand-in for a browser's document, for test_page_script.py.
// Reads {tokens: {long, global}, selects: {id: [values]}, data, script, actions}; prints what is
// shown after each action.
"use strict";

class Element {
  constructor() {
    Object.assign(this, { children: [], attributes: {}, dataset: {}, listeners: {}, text: "" });
    this.marks = new Set();
    this.classList = {
      add: (...names) => {
        for (const name of names) this.marks.add(name);
      },
      remove: (...names) => {
        for (const name of names) this.marks.delete(name);
      },
    };
    this.style = {
      setProperty: (name, value) => {
        this.shade = value;
      },
    };
  }
  get textContent() {
    return this.text;
  }
  set textContent(text) {
    this.text = String(text);
  }
  setAttribute(name, value) {
    this.attributes[name] = value;
  }
  removeAttribute(name) {
    delete this.attributes[name];
  }
  appendChild(child) {
    this.children.push(child);
    return child;
  }
  replaceChildren(...children) {
    this.children = children;
  }
  addEventListener(name, listener) {
    this.listeners[name] = listener;
  }
  querySelectorAll(selector) {
    const isOne = (child) => selector === "[data-token]" || child.attributes.tabindex === "0";
    return this.children.filter(isOne);
  }
  closest() {
    return "token" in this.dataset ? this : null;
  }
  focus() {
    focused = this;
    this.parent.listeners.focusin({ target: this });
  }
}

const input = JSON.parse(require("fs").readFileSync(0, "utf8"));
const elements = {
  data: new Element(),
  hint: new Element(),
  told: new Element(),
  seen: new Element(),
};
let focused = null;
elements.data.text = input.data;
Object.assign(elements.seen, { caption: new Element(), tBodies: [new Element()] });
const tokens = [];
for (const side of ["long", "global"]) {
  elements[side] = new Element();
  for (const { number } of input.tokens[side]) {
    const token = Object.assign(elements[side].appendChild(new Element()), {
      parent: elements[side],
      dataset: { token: String(number) },
    });
    tokens[number] = token;
  }
}
for (const [id, values] of Object.entries(input.selects)) {
  elements[id] = Object.assign(new Element(), { value: values[0] });
}
global.getComputedStyle = () => ({ direction: "ltr" });
global.document = {
  getElementById: (id) => elements[id] ?? null,
  createElement: () => new Element(),
};
new Function(input.script)();

const isColor = (mark) => mark.startsWith("attended");
const states = input.actions.map(([name, target, more]) => {
  if (name === "change") {
    elements[target].value = more;
    elements[target].listeners.change();
  } else if (name === "focus") {
    tokens[target].focus();
  } else {
    const event = { target: tokens[target], key: more, preventDefault() {} };
    tokens[target].parent.listeners[name](event);
  }
  const marked = (mark) => tokens.flatMap((x, number) => (x.marks.has(mark) ? [number] : []));
  return {
    told: elements.told.text,
    rows: elements.seen.tBodies[0].children.map((row) => row.children.map((x) => x.text)),
    hidden: elements.seen.hidden,
    hasHint: !elements.hint.hidden,
    query: marked("query"),
    seen: tokens.flatMap((x, number) => ([...x.marks].some(isColor) ? [number] : [])),
    below: marked("attended-below"),
    shades: tokens.map((x) => x.shade ?? null),
    focused: tokens.indexOf(focused),
    tabbable: tokens.flatMap((x, number) => (x.attributes.tabindex === "0" ? [number] : [])),
    pressed: tokens.flatMap((x, number) => ("aria-pressed" in x.attributes ? [number] : [])),
  };
});
console.log(JSON.stringify(states));
