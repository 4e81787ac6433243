"""The part of the page's script that handles its form."""

__all__ = ["SCRIPT"]

SCRIPT = """
function addDocument() {
  const number = find("documents").children.length + 1;
  const box = make("p");
  const label = make("label", `Document ${number}`);
  const text = make("textarea");
  text.id = `document-${number}`;
  text.rows = 6;
  text.required = number === 1;
  label.htmlFor = text.id;
  box.append(label, text);
  find("documents").append(box);
  return text;
}

async function send(event) {
  event.preventDefault();
  const asked = ++numAsked;
  const button = find("send");
  button.disabled = true;
  find("form").setAttribute("aria-busy", "true");
  find("error").hidden = true;
  try {
    const show = await forms[data.kind]();
    if (asked !== numAsked) return;
    find("result").hidden = true;
    find("answer").replaceChildren();
    find("more").replaceChildren();
    show();
    find("result").hidden = false;
  } catch (error) {
    if (asked !== numAsked) return;
    find("result").hidden = true;
    find("error").textContent = error.message;
    find("error").hidden = false;
  } finally {
    if (asked === numAsked) {
      button.disabled = false;
      find("form").removeAttribute("aria-busy");
    }
  }
}

find("form").addEventListener("submit", send);
find("form").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) find("form").requestSubmit();
});
if (find("add")) {
  find("add").addEventListener("click", () => addDocument().focus());
  addDocument();
}
"""
