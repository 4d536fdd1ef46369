// The table of suspects: sorted, filtered, and one row chosen.

const VALUES_SHOWN = 12;
const VALUES_PRINTED = 3;
const AT_ONCE = 1000;

const tableColumns = [
  {
    key: "row",
    title: "Row",
    width: 4.6,
    number: true,
    value: (s) => s.row,
    cell: (s) => String(s.row + 1),
    head: true,
  },
  {
    key: "given",
    title: "Given",
    width: 7,
    value: (s) => className(page.labels[s.row]),
    cell: (s) => shortened(className(page.labels[s.row])),
  },
  {
    key: "suggested",
    title: "Looks like",
    width: 7,
    value: (s) => className(s.suggested),
    cell: (s) => shortened(className(s.suggested)),
  },
  {
    key: "score",
    title: "Score",
    width: 4.8,
    number: true,
    descending: true,
    value: (s) => finite(s.score),
    // with as many digits everywhere: numbers that are compared stand below each other
    cell: (s) => (Math.abs(s.score) <= 1 && isNumber(s.score) ? s.score.toFixed(4) : brief(s.score)),
  },
  {
    key: "sure",
    title: "Sure",
    hint: "How sure the suggestion is",
    width: 4.4,
    number: true,
    descending: true,
    wordy: true,
    value: (s) => finite(s.confidence),
    cell: (s) => percent(s.confidence),
  },
  {
    key: "agreement",
    title: "Agree",
    hint: "Share of the fits without the row that agree",
    width: 4.8,
    number: true,
    descending: true,
    wordy: true,
    value: (s) => finite(s.agreement),
    cell: (s) => percent(s.agreement),
  },
  {
    key: "decision",
    title: "Decision",
    width: 12.4,
    value: (s) => (marks.has(s.row) ? describe(marks.get(s.row)) : "~"),
    cell: markButtons,
  },
  {
    key: "why",
    title: "Why",
    width: 15,
    wordy: true,
    value: (s) => s.reasons.join("; "),
    cell: (s) => shortened(s.reasons.join("; ") || "–", 160),
  },
  ...columns.slice(0, VALUES_SHOWN).map((column, place) => ({
    key: "value " + column,
    title: columnName(column),
    width: 6.5,
    number: page.numeric[column],
    values: true,
    late: place >= VALUES_PRINTED,
    value: page.numeric[column] ? (s) => numbersOf(column)[s.row] : (s) => page.cells[column][s.row],
    cell: (s) => shortened(page.cells[column][s.row]),
  })),
];

const collator = new Intl.Collator("en", { numeric: true });
const elements = new Map();
const haystacks = new Map();
let order = { key: "score", descending: true };
let shown = [];
let limit = AT_ONCE;
let current = null;

// The short forms fit a phone; a screen reader hears the whole.
function markButtons(suspect) {
  const box = el("span", { className: "marks" });
  for (const kind of KINDS) {
    const title = kind[0].toUpperCase() + kind.slice(1);
    const button = el(
      "button",
      { type: "button", tabIndex: -1 },
      title[0],
      el("span", { className: "rest" }, title.slice(1)),
    );
    button.dataset.mark = kind;
    button.setAttribute("aria-label", `${title} row ${suspect.row + 1}`);
    box.append(button);
  }
  box.append(el("span", { className: "said" }));
  return box;
}

function buildHead() {
  for (const column of tableColumns) {
    const head = el("th", { scope: "col", role: "columnheader", className: cssOf(column) });
    const button = el("button", { type: "button", title: column.hint || "" }, shortened(column.title, 40));
    button.addEventListener("click", () => sortBy(column));
    // a button is not repeated on the next sheet of paper
    head.append(button, el("span", { className: "on-paper", ariaHidden: "true" }, visible(column.title)));
    byId("heads").append(head);
    column.element = head;
    byId("widths").append(el("col", { className: cssOf(column) }));
  }
  const tracks = tableColumns.map(({ width, key }) => (key === "why" ? `minmax(${width}rem, 1fr)` : width + "rem"));
  byId("table").style.setProperty("--wide", tracks.join(" "));
  byId("table").style.minWidth = tableColumns.reduce((sum, column) => sum + column.width, 0) + "rem";
}

const cssOf = (column) =>
  [column.values ? "value" : column.key, column.number && "number", column.wordy && "wordy", column.late && "late"]
    .filter(Boolean)
    .join(" ");

function elementOf(suspect) {
  let element = elements.get(suspect.row);
  if (!element) {
    element = el("tr", { tabIndex: -1, role: "row" });
    element.dataset.row = suspect.row;
    for (const column of tableColumns) {
      const cell = el(
        column.head ? "th" : "td",
        { role: column.head ? "rowheader" : "cell", className: cssOf(column) },
        column.cell(suspect),
      );
      element.append(cell);
    }
    elements.set(suspect.row, element);
    showMark(suspect.row);
  }
  return element;
}

// Brings a row's buttons and colour in line with its decision.
function showMark(row) {
  const element = elements.get(row);
  if (!element) return;
  const mark = marks.get(row);
  if (mark) element.dataset.decision = mark.decision;
  else delete element.dataset.decision;
  for (const button of element.querySelectorAll("[data-mark]")) {
    button.setAttribute("aria-pressed", String(Boolean(mark) && mark.decision === button.dataset.mark));
    if (button.dataset.mark !== "relabel") continue;
    const to = mark && mark.decision === "relabel" ? mark.label : suspectOf.get(row).suggested;
    button.title = to === page.labels[row] ? "Choose the new class beside the table" : visible(`to ${className(to)}`);
  }
  const other = mark && mark.decision === "relabel" && mark.label !== suspectOf.get(row).suggested;
  const suggested = element.querySelector(".suggested");
  suggested.querySelector(".becomes")?.remove();
  if (other) suggested.prepend(el("span", { className: "becomes" }, "→ ", shortened(className(mark.label), 30), " "));
  element.querySelector(".said").replaceChildren(...(mark ? [bdi(describe(mark))] : []));
}

function sortBy(column) {
  const again = order.key === column.key;
  order = { key: column.key, descending: again ? !order.descending : Boolean(column.descending) };
  render();
  announce(`Sorted by ${column.title}, ${order.descending ? "descending" : "ascending"}`);
}

function compare(column) {
  const sign = order.descending ? -1 : 1;
  return (a, b) => {
    const [x, y] = [column.value(a), column.value(b)];
    let difference = 0;
    if (typeof x === "string" || typeof y === "string") difference = sign * collator.compare(x, y);
    // what is missing comes last in either direction
    else if (Number.isNaN(x) || Number.isNaN(y)) difference = Number.isNaN(x) - Number.isNaN(y);
    else difference = sign * (x - y);
    return difference || a.rank - b.rank;
  };
}

function haystack(suspect) {
  if (!haystacks.has(suspect.row)) {
    const parts = [
      String(suspect.row + 1),
      className(page.labels[suspect.row]),
      className(suspect.suggested),
      ...suspect.reasons,
    ];
    for (const column of page.cells) parts.push(column[suspect.row]);
    haystacks.set(suspect.row, parts.join("\n").toLowerCase());
  }
  return haystacks.get(suspect.row);
}

function passes() {
  const wanted = byId("find").value.toLowerCase().trim();
  const [given, suggested, decided] = ["given", "suggested", "decided"].map((id) => byId(id).value);
  const least = byId("least").value === "" ? -Infinity : Number(byId("least").value);
  return (suspect) => {
    const mark = marks.get(suspect.row);
    if (given !== "" && page.labels[suspect.row] !== Number(given)) return false;
    if (suggested !== "" && suspect.suggested !== Number(suggested)) return false;
    if (
      decided === "open" ? mark : decided === "marked" ? !mark : decided !== "" && (!mark || mark.decision !== decided)
    )
      return false;
    if (least !== -Infinity && !(suspect.score >= least)) return false;
    return wanted === "" || haystack(suspect).includes(wanted);
  };
}

// Filters, sorts and shows; the chosen row stays chosen as long as it is listed.
function render() {
  const column = tableColumns.find((candidate) => candidate.key === order.key);
  shown = suspects.filter(passes()).sort(compare(column));
  const listed = shown.slice(0, limit);
  byId("body").replaceChildren(...listed.map(elementOf));
  for (const each of tableColumns) {
    if (each === column) each.element.setAttribute("aria-sort", order.descending ? "descending" : "ascending");
    else each.element.removeAttribute("aria-sort");
  }
  const left = shown.length - listed.length;
  byId("more").hidden = left === 0;
  byId("more").textContent = `Show ${count(Math.min(left, AT_ONCE))} more of ${count(left)}`;
  byId("count").textContent = countLine();
  byId("nothing").hidden = shown.length > 0;
  byId("nothing").textContent = suspects.length ? "No row passes the filter." : "No row of this table looks wrong.";
  if (current === null || !shown.some((suspect) => suspect.row === current)) choose(shown.length ? shown[0].row : null);
}

function countLine() {
  const line = page.first_line > 0 ? `; row 1 is on line ${page.first_line} of the file` : "";
  return `${plural(shown.length, "row")} of ${count(suspects.length)} shown. Rows are counted from 1, without a header${line}.`;
}

function choose(row, { focus = false, scroll = false } = {}) {
  const old = elements.get(current);
  if (old) {
    old.removeAttribute("aria-current");
    old.tabIndex = -1;
  }
  current = row;
  const element = row === null ? null : elements.get(row);
  if (element) {
    element.setAttribute("aria-current", "true");
    element.tabIndex = 0;
    if (focus) element.focus({ preventScroll: true });
    if (scroll || focus) intoView(element);
  }
  showDetail();
  drawSuspects();
  markMargin();
}

// Scrolls the table's own box and never the page, so that keys do not make it jump.
function intoView(element) {
  const box = byId("scroll");
  const top = element.offsetTop - byId("heads").offsetHeight;
  const bottom = element.offsetTop + element.offsetHeight;
  if (top < box.scrollTop) box.scrollTop = top;
  else if (bottom > box.scrollTop + box.clientHeight) box.scrollTop = bottom - box.clientHeight;
}

// The row listed this many places after the chosen one.
function neighbour(step) {
  const at = shown.findIndex((suspect) => suspect.row === current);
  const next = Math.min(shown.length - 1, Math.max(0, at + step));
  if (next >= limit) {
    limit += AT_ONCE;
    render();
  }
  return shown.length ? shown[next].row : null;
}
