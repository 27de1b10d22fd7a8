"use strict";
// Show only the entries that have all words of the search field. Text is compared, never run or rendered.
const field = document.getElementById("find");
const count = document.getElementById("found");
const days = [...document.querySelectorAll("section")].map((section, number) => ({
  section,
  row: document.querySelectorAll("#days tbody tr")[number],
  entries: [...section.querySelectorAll("article")].map((article) => ({
    article,
    isTurn: article.classList.contains("turn"),
    text: `${section.id} ${article.textContent}`.toLowerCase(),
  })),
}));

function filter() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  let found = 0;
  for (const day of days) {
    let inDay = 0;
    let session = null;
    for (const entry of day.entries) {
      const matches = words.every((word) => entry.text.includes(word));
      entry.article.hidden = !matches;
      inDay += matches;
      if (!entry.isTurn) session = entry.article;
      else if (matches && session) session.hidden = false; // the heading above it
    }
    day.section.hidden = day.row.hidden = !inDay;
    found += inDay;
  }
  count.textContent = words.length ? `${found} found` : "";
}

function reveal() {
  const target = document.getElementById(location.hash.slice(1));
  if (!target || !target.hidden) return;
  field.value = "";
  filter();
  target.scrollIntoView();
}

document.getElementById("search").hidden = false; // without scripts there is no field
field.addEventListener("input", filter);
addEventListener("hashchange", reveal); // a link can lead to an entry that the search hides
filter(); // a browser may restore the text of the field
