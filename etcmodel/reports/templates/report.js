"use strict";
const filter = document.getElementById("filter");
if (filter) {
  const all = document.querySelectorAll("article").length;
  const wrong = document.querySelectorAll("article.wrong").length;
  const told = document.getElementById("shown");
  const before = told.textContent;
  filter.hidden = false;
  filter.firstElementChild.addEventListener("change", (event) => {
    const only = event.target.checked;
    document.body.classList.toggle("only-wrong", only);
    told.textContent = only ? `${wrong} of the ${all} on this page` : before;
  });
}
