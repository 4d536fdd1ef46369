// The reader's decisions: row -> { decision, label }. They are kept by the browser, and leave as CSV.

const marks = new Map();
const past = [];
const KINDS = ["keep", "relabel", "drop"];

function describe(mark) {
  if (!mark) return "no decision";
  return mark.decision === "relabel" ? `relabel to ${className(mark.label)}` : mark.decision;
}

const sameMark = (a, b) => (a ? a.decision : "") === (b ? b.decision : "") && (a ? a.label : -1) === (b ? b.label : -1);

function put(row, mark) {
  if (mark) marks.set(row, mark);
  else marks.delete(row);
}

// Sets (or, with null, clears) the decision on a row, so that it can be undone.
function decide(row, mark) {
  const before = marks.get(row) || null;
  if (sameMark(before, mark)) return false;
  past.push({ row, before });
  put(row, mark);
  keepMarks();
  return true;
}

// Takes back the last change; the row it was about, or null.
function undoLast() {
  const last = past.pop();
  if (!last) return null;
  put(last.row, last.before);
  keepMarks();
  return last.row;
}

function keepMarks() {
  const list = [...marks].map(([row, mark]) => [row, mark.decision, mark.decision === "relabel" ? mark.label : null]);
  try {
    localStorage.setItem(storageKey, JSON.stringify(list));
  } catch {
    warnUnkept();
  }
}

function warnUnkept() {
  warn(
    "This browser keeps nothing for this page: your decisions are lost when you close or reload it. Download them before you do.",
  );
}

// Whatever is stored there, only decisions that make sense are taken.
function readMarks(text) {
  marks.clear();
  let list;
  try {
    list = JSON.parse(text);
  } catch {
    return;
  }
  if (!Array.isArray(list)) return;
  for (const entry of list) {
    const [row, decision, label] = Array.isArray(entry) ? entry : [];
    if (!suspectOf.has(row) || !KINDS.includes(decision)) continue;
    if (decision !== "relabel") marks.set(row, { decision });
    else if (Number.isInteger(label) && label >= 0 && label < page.classes.length) marks.set(row, { decision, label });
  }
}

function loadMarks() {
  try {
    const text = localStorage.getItem(storageKey);
    if (text !== null) readMarks(text);
    // reading may be allowed where writing is not
    localStorage.setItem(storageKey, text === null ? "[]" : text);
    byId("kept").textContent = "Your decisions are kept by this browser, for this table and this audit.";
  } catch {
    warnUnkept();
  }
}

// RFC 4180.
function field(text) {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

// A row of one empty field would be an empty line.
const record = (fields) => (fields.length === 1 && fields[0] === "" ? '""' : fields.map(field).join(",")) + "\n";

function decisionsCsv() {
  const lines = [...marks]
    .sort(([a], [b]) => a - b)
    .map(([row, mark]) =>
      record([String(row + 1), mark.decision, mark.decision === "relabel" ? className(mark.label) : ""]),
    );
  return "row,decision,label\n" + lines.join("");
}

// The cells as they came; only the target of relabelled rows changes, and dropped rows are left out.
function correctedCsv() {
  const parts = [];
  const target = page.target_column === null ? page.cells.length : page.target_column;
  if (page.header) {
    const names = [...page.header];
    if (target === names.length) names.push(page.target);
    parts.push(record(names));
  }
  for (let row = 0; row < rows; row++) {
    const mark = marks.get(row);
    if (mark && mark.decision === "drop") continue;
    const fields = page.cells.map((column) => column[row]);
    if (target === fields.length) fields.push(className(page.labels[row]));
    if (mark && mark.decision === "relabel") fields[target] = className(mark.label);
    parts.push(record(fields));
  }
  return parts.join("");
}

function download(name, text) {
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
  const link = el("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}

// people.csv.gz -> people-decisions.csv
function fileName(ending) {
  const base = page.source
    .split(/[\\/]/)
    .pop()
    .replace(/(\.[A-Za-z0-9]{1,8}){1,2}$/, "")
    .replace(/[^\p{L}\p{N}_.-]+/gu, "_");
  return `${base.slice(0, 80) || "table"}-${ending}.csv`;
}
