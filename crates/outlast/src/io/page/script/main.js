// What the reader does: filters, decisions by mouse and key, downloads, light and dark, print.

function afterDecision(row) {
  showMark(row);
  showDetailMark();
  showProgress();
  drawSuspects();
}

function showProgress() {
  const of = (kind) => [...marks.values()].filter((mark) => mark.decision === kind).length;
  const parts = KINDS.map((kind) => `${count(of(kind))} ${kind}`).join(", ");
  byId("progress").textContent = `${count(marks.size)} of ${count(suspects.length)} decided: ${parts}`;
  byId("undo").disabled = past.length === 0;
  byId("download-decisions").disabled = marks.size === 0;
}

// A decision on a row by its kind; null if it needs a class that nobody named.
function markFor(row, kind, label) {
  if (kind !== "relabel") return { decision: kind };
  const old = marks.get(row);
  const to = label !== undefined ? label : old && old.decision === "relabel" ? old.label : suspectOf.get(row).suggested;
  return to === page.labels[row] ? null : { decision: "relabel", label: to };
}

function markRow(row, kind, { label, toggle = false } = {}) {
  const old = marks.get(row);
  let mark = markFor(row, kind, label);
  if (!mark) {
    announce(`Row ${row + 1}: choose the new class`);
    choose(row);
    byId("relabel").focus();
    return false;
  }
  if (toggle && old && sameMark(old, mark)) mark = null;
  decide(row, mark);
  afterDecision(row);
  announce(`Row ${row + 1}: ${describe(mark)}. ${marks.size} of ${suspects.length} decided.`);
  return true;
}

// By key: the row may leave the filtered list, and the next one is chosen.
function markByKey(kind, label) {
  if (current === null) return;
  const focused = document.activeElement && document.activeElement.closest("#body tr");
  const row = current;
  const next = byId("advance").checked ? neighbour(1) : row;
  if (!markRow(row, kind, { label })) return;
  if (byId("decided").value !== "") render();
  const listed = shown.some((suspect) => suspect.row === next);
  if (listed) choose(next, { focus: Boolean(focused), scroll: true });
}

function undo() {
  const row = undoLast();
  if (row === null) {
    announce("Nothing to undo");
    return;
  }
  afterDecision(row);
  if (byId("decided").value !== "") render();
  pickFromMap(row);
  announce(`Undone. Row ${row + 1}: ${describe(marks.get(row))}. ${marks.size} of ${suspects.length} decided.`);
}

function move(step) {
  const row = neighbour(step);
  if (row === null) return;
  choose(row, { focus: true });
  const suspect = suspectOf.get(row);
  announce(
    `Row ${row + 1}, given ${className(page.labels[row])}, looks like ${className(suspect.suggested)}, ${describe(marks.get(row))}`,
  );
}

const isField = (element) =>
  element instanceof Element && element.closest("input, select, textarea") !== null && element.type !== "checkbox";

// A button or link that has the focus for something else than decisions about rows.
const isElsewhere = (element) =>
  element instanceof Element &&
  element.closest("button, a, summary, input") !== null &&
  element.closest("#body, .detail .marks") === null;

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (isField(event.target)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const inTable = event.target instanceof Element && event.target.closest("#body tr, #scroll") !== null;
  const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -suspects.length, End: suspects.length };
  if (inTable && event.key in steps) {
    event.preventDefault();
    move(steps[event.key]);
    return;
  }
  if (!byId("shortcuts").checked) return;
  const act = letterAction(event.key);
  if (!act) return;
  // nobody who has just pressed a button means a row that may be out of sight
  if (isElsewhere(event.target) && /^[krdu1-9]$/.test(event.key)) {
    announce(`The key ${event.key} decides about a row when the list has the focus`);
    return;
  }
  event.preventDefault();
  act();
}

function letterAction(key) {
  const digit = /^[1-9]$/.test(key) ? Number(key) - 1 : -1;
  if (digit >= 0) return digit < page.classes.length ? () => markDigit(digit) : null;
  const actions = {
    k: () => markByKey("keep"),
    r: () => markByKey("relabel"),
    d: () => markByKey("drop"),
    u: undo,
    j: () => move(1),
    n: () => move(1),
    p: () => move(-1),
    "/": () => byId("find").focus(),
  };
  return Object.hasOwn(actions, key) ? actions[key] : null;
}

// Relabelling to the class a row has is keeping it.
function markDigit(code) {
  if (current === null) return;
  if (code === page.labels[current]) markByKey("keep");
  else markByKey("relabel", code);
}

function listenToTable() {
  const rowOf = (event) => {
    const element = event.target.closest("tr");
    return element ? Number(element.dataset.row) : null;
  };
  byId("body").addEventListener("click", (event) => {
    const row = rowOf(event);
    if (row === null) return;
    const button = event.target.closest("[data-mark]");
    choose(row, { focus: !button });
    if (button) markRow(row, button.dataset.mark, { toggle: true });
  });
  byId("body").addEventListener("focusin", (event) => {
    if (event.target.matches("tr") && rowOf(event) !== current) choose(rowOf(event));
  });
  byId("body").addEventListener("mouseover", (event) => rowOf(event) !== map.near && hoverRow(rowOf(event)));
  byId("body").addEventListener("mouseleave", () => hoverRow(null));
  byId("more").addEventListener("click", () => {
    limit += AT_ONCE;
    render();
  });
}

let filtered = "";
function refilter() {
  const now = JSON.stringify(["find", "given", "suggested", "decided", "least"].map((id) => byId(id).value));
  if (now === filtered) return;
  filtered = now;
  limit = AT_ONCE;
  render();
}

function listenToFilters() {
  const options = () => [
    el("option", { value: "" }, "any"),
    ...page.classes.map((name, code) => el("option", { value: String(code) }, named(name))),
  ];
  byId("given").replaceChildren(...options());
  byId("suggested").replaceChildren(...options());
  // some ways of choosing from a list send only one of the two
  for (const kind of ["input", "change"]) byId("filters").addEventListener(kind, refilter);
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  // the fields are empty only after the event
  byId("filters").addEventListener("reset", () => setTimeout(refilter));
}

function listenToDetail() {
  for (const button of document.querySelectorAll(".detail [data-mark]")) {
    button.addEventListener("click", () => {
      const chosen = byId("relabel").value;
      const label = button.dataset.mark === "relabel" && chosen !== "" ? Number(chosen) : undefined;
      if (current !== null) markRow(current, button.dataset.mark, { label, toggle: true });
    });
  }
  byId("relabel").addEventListener("change", () => {
    const chosen = byId("relabel").value;
    if (chosen === "" || current === null) return showDetailMark();
    if (Number(chosen) === page.labels[current]) markRow(current, "keep");
    else markRow(current, "relabel", { label: Number(chosen) });
  });
  byId("all-values").addEventListener("click", () => {
    allValues = true;
    showDetail();
  });
}

function listenToDownloads() {
  byId("undo").addEventListener("click", undo);
  byId("download-decisions").addEventListener("click", () => download(fileName("decisions"), decisionsCsv()));
  byId("download-table").addEventListener("click", () => download(fileName("corrected"), correctedCsv()));
  byId("download-table").hidden = !hasCells;
  byId("no-table").hidden = hasCells;
}

// Another tab with the same page decided something.
function followOtherTabs() {
  window.addEventListener("storage", (event) => {
    if (event.key !== storageKey || event.newValue === null) return;
    readMarks(event.newValue);
    past.length = 0;
    for (const row of elements.keys()) showMark(row);
    showProgress();
    showDetailMark();
    render();
    drawSuspects();
  });
}

function redrawCharts() {
  buildLegend();
  return Promise.all([showMap(), showMargins()]);
}

function followWindow() {
  darkMedia.addEventListener("change", () => void redrawCharts());
  const forPrint = (now) => {
    printing = now;
    void redrawCharts();
  };
  window.addEventListener("beforeprint", () => forPrint(true));
  window.addEventListener("afterprint", () => forPrint(false));
  let timer = 0;
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (printing || window.innerWidth === width) return;
    width = window.innerWidth;
    clearTimeout(timer);
    timer = setTimeout(() => void redrawCharts(), 100);
  });
}

function start() {
  showHeadline();
  loadMarks();
  buildHead();
  fillRelabel();
  fillAxes();
  byId("digits").replaceChildren(
    ...page.classes.slice(0, 9).flatMap((name, code) => [code ? ", " : "", `${code + 1} `, shortened(name, 20)]),
  );
  listenToFilters();
  listenToTable();
  listenToDetail();
  listenToDownloads();
  followOtherTabs();
  followWindow();
  document.addEventListener("keydown", onKey);
  byId("log").addEventListener("change", () => void showMargins());
  render();
  showProgress();
  showMatrices();
  void redrawCharts().then(() => document.documentElement.setAttribute("data-ready", "true"));
}

start();
