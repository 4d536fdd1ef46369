// The chosen row: why it is suspect, what to do with it, and its values beside those of the two classes in question.

const DETAIL_COLUMNS = 60;
let allValues = false;

function showDetail() {
  const suspect = suspectOf.get(current);
  byId("detail").hidden = !suspect;
  byId("detail-title").textContent = suspect ? `Row ${current + 1}` : "No row chosen";
  if (!suspect) return;
  const given = page.labels[current];
  const verdict = ["Given ", bdi(className(given))];
  if (suspect.suggested === given) verdict.push(", and it looks like that class");
  else verdict.push(", looks like ", bdi(className(suspect.suggested)), ` (${percent(suspect.confidence)} sure)`);
  verdict.push(
    `. Score ${brief(suspect.score)}, margin ${brief(page.margins[current])}, ${percent(suspect.agreement)} of the fits agree.`,
  );
  byId("verdict").replaceChildren(...verdict);
  byId("reasons").replaceChildren(...suspect.reasons.map((reason) => el("li", {}, bdi(reason))));
  showDetailMark();
  showValues(given, suspect.suggested);
}

function showDetailMark() {
  const suspect = suspectOf.get(current);
  if (!suspect) return;
  const mark = marks.get(current);
  byId("detail").dataset.decision = mark ? mark.decision : "";
  for (const button of document.querySelectorAll(".detail [data-mark]")) {
    button.setAttribute("aria-pressed", String(Boolean(mark) && mark.decision === button.dataset.mark));
  }
  const given = page.labels[current];
  const to = mark && mark.decision === "relabel" ? mark.label : suspect.suggested;
  byId("relabel").value = to === given ? "" : String(to);
}

function fillRelabel() {
  const options = page.classes.map((name, code) =>
    el("option", { value: String(code) }, named(name)),
  );
  byId("relabel").replaceChildren(el("option", { value: "" }, "choose"), ...options);
}

function showValues(given, suggested) {
  const table = byId("values");
  const classes = suggested === given ? [given] : [given, suggested];
  const heads = classes.map((code) => el("th", { scope: "col", className: "number" }, shortened(className(code), 24)));
  const head = el(
    "tr",
    {},
    el("th", { scope: "col" }, "Column"),
    el("th", { scope: "col", className: "number" }, "This row"),
    ...heads,
  );
  const listed = allValues ? columns : columns.slice(0, DETAIL_COLUMNS);
  table.replaceChildren(
    el(
      "caption",
      { className: "note" },
      "For each class, the median of its rows, or the share of its rows with the same text; the nearer one stands out.",
    ),
    el("thead", {}, head),
    el("tbody", {}, ...listed.map((column) => valueLine(column, classes))),
  );
  byId("all-values").hidden = listed.length === columns.length;
  byId("all-values").textContent = `Show all ${count(columns.length)} columns`;
  table.parentElement.hidden = columns.length === 0;
}

function valueLine(column, classes) {
  const text = page.cells[column][current];
  const numeric = page.numeric[column];
  const own = numeric ? numbersOf(column)[current] : NaN;
  // nearness: smaller is nearer
  const facts = classes.map((code) => {
    if (!numeric) {
      const share = shareOf(column, code, text);
      return { text: percent(share), far: -share };
    }
    const median = medianOf(column, code);
    return { text: brief(median), far: Math.abs(own - median) };
  });
  const nearest = facts.length === 2 && facts[0].far !== facts[1].far ? Math.min(facts[0].far, facts[1].far) : NaN;
  const cells = facts.map((fact) => {
    const nearer = fact.far === nearest;
    const cell = el("td", { className: nearer ? "number nearer" : "number" }, fact.text);
    if (nearer) cell.append(el("span", { className: "unseen" }, " (nearer)"));
    return cell;
  });
  const name = el("th", { scope: "row" }, shortened(columnName(column)));
  return el("tr", {}, name, el("td", { className: "number" }, shortened(text, 200)), ...cells);
}
