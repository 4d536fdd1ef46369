// The audit's data, and ways to put it on the page. Text goes into the document as text nodes only.

const page = JSON.parse(document.getElementById("data").textContent);
const storageKey = "outlast-audit-" + document.getElementById("data").dataset.key;

const byId = (id) => document.getElementById(id);
const rows = page.labels.length;
const hasCells = page.cells.length > 0;
const suspectOf = new Map(page.suspects.map((suspect, rank) => [suspect.row, { ...suspect, rank }]));
const suspects = [...suspectOf.values()];

// An element with properties and children; strings become text.
function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

// Signs that turn the direction of text are shown, not obeyed: "\u202etac" must not read "cat".
const visible = (text) =>
  text.replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (sign) => `\\u{${sign.codePointAt(0).toString(16)}}`);

// Text of the data, kept from turning the direction of its neighbours.
const bdi = (text) => el("bdi", {}, visible(text));

// The same, short, with the whole of it in the tooltip.
function shortened(text, longest = 60) {
  if (text === "") return el("span", { className: "muted" }, "(empty)");
  const signs = [...visible(text.slice(0, 4 * longest))];
  if (signs.length <= longest) return bdi(text);
  return el("bdi", { title: visible(text.slice(0, 2000)) }, signs.slice(0, longest).join("") + "…");
}

// The same where only text can stand: lists to choose from.
const named = (text) => (text === "" ? "(empty)" : visible(text));

const columnName = (column) => (page.header ? page.header[column] : `column ${column + 1}`);
const className = (code) => page.classes[code];
const isNumber = (value) => typeof value === "number" && Number.isFinite(value);
const finite = (value) => (isNumber(value) ? value : NaN);
const count = (number) => number.toLocaleString("en");
const plural = (number, one, many = one + "s") => `${count(number)} ${number === 1 ? one : many}`;
const percent = (share, digits = 0) => (isNumber(share) ? `${(100 * share).toFixed(digits)}\u00a0%` : "–");

// A number in about four digits.
function brief(value) {
  if (!isNumber(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e6 || size < 1e-3)) return value.toExponential(2);
  return String(Number(value.toPrecision(4)));
}

const columns = page.cells.map((_, column) => column).filter((column) => column !== page.target_column);

// The numbers of a column; what is none is NaN.
const numbersOf = (() => {
  const known = new Map();
  return (column) => {
    if (!known.has(column)) {
      const parse = (text) => (text.trim() === "" ? NaN : finite(Number(text)));
      known.set(column, Float64Array.from(page.cells[column], parse));
    }
    return known.get(column);
  };
})();

const rowsOf = (() => {
  const lists = page.classes.map(() => []);
  page.labels.forEach((label, row) => lists[label].push(row));
  return (code) => lists[code];
})();

// Median of a column over the rows given a class.
const medianOf = (() => {
  const known = new Map();
  return (column, code) => {
    const key = column + " " + code;
    if (!known.has(key)) {
      const numbers = numbersOf(column);
      const values = Float64Array.from(rowsOf(code), (row) => numbers[row])
        .filter((value) => !Number.isNaN(value))
        .sort();
      const half = values.length >> 1;
      known.set(key, values.length % 2 ? values[half] : (values[half - 1] + values[half]) / 2);
    }
    return known.get(key);
  };
})();

// Share of the rows given a class that have this text in a column.
const shareOf = (() => {
  const known = new Map();
  return (column, code, text) => {
    const key = column + " " + code;
    if (!known.has(key)) {
      const counts = new Map();
      for (const row of rowsOf(code))
        counts.set(page.cells[column][row], (counts.get(page.cells[column][row]) || 0) + 1);
      known.set(key, counts);
    }
    return (known.get(key).get(text) || 0) / Math.max(1, rowsOf(code).length);
  };
})();

function announce(text) {
  byId("live").textContent = visible(text);
}

function warn(text) {
  byId("warning").textContent = text;
  byId("warning").hidden = false;
}
