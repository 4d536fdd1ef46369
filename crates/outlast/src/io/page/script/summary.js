// Headline, histogram of margins, matrices and model card.

const MATRIX_CLASSES = 24;
const PAIRS = 60;

function pairs(list, target) {
  byId(target).replaceChildren(
    ...list.map(([name, value]) => el("div", {}, el("dt", {}, bdi(name)), el("dd", {}, bdi(value)))),
  );
}

function showHeadline() {
  document.title = visible(`Label audit of ${page.source}`);
  byId("source").textContent = visible(page.source);
  byId("target").textContent = visible(page.target);
  byId("version").textContent = page.version;
  pairs(page.headline, "headline");
  byId("model").replaceChildren(
    ...page.model.flatMap(([name, value]) => [el("dt", {}, bdi(name)), el("dd", {}, bdi(value))]),
  );
}

// Freedman and Diaconis' width, between 10 and 80 bars; the outermost bars take what lies far outside.
function binsOf(values) {
  const sorted = Float64Array.from(values).sort();
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
  let [low, high] = [at(0.002), at(0.998)];
  if (isNumber(page.truncation)) low = Math.min(low, page.truncation);
  if (!(high > low)) [low, high] = [low - 0.5, low + 0.5];
  const width = (2 * (at(0.75) - at(0.25))) / Math.cbrt(sorted.length);
  const bars = Math.min(80, Math.max(10, Math.ceil((high - low) / width) || 10));
  return { low, step: (high - low) / bars, bars };
}

function counted(values, { low, step, bars }) {
  const counts = new Array(bars).fill(0);
  for (const value of values) counts[Math.min(bars - 1, Math.max(0, Math.floor((value - low) / step)))] += 1;
  return counts;
}

function upright(x, colour, dash, width = 2) {
  return { type: "line", x0: x, x1: x, yref: "paper", y0: 0, y1: 1, line: { color: colour, dash, width } };
}

const margins = page.margins.filter(isNumber);
const bins = margins.length ? binsOf(margins) : null;
let markTimer = 0;

function marginShapes() {
  const shapes = [upright(0, mutedOf(), "dot", 1)];
  if (isNumber(page.truncation)) shapes.push(upright(page.truncation, isDark() ? "#ff9fa7" : "#a3162a", "dash"));
  if (current !== null && !printing && isNumber(page.margins[current])) {
    const inside = Math.min(bins.low + bins.step * bins.bars, Math.max(bins.low, page.margins[current]));
    shapes.push(upright(inside, inkOf(), "solid", 1.5));
  }
  return shapes;
}

function showMargins() {
  if (!bins) {
    byId("margins").hidden = true;
    byId("margins-note").textContent = "There are no margins to show.";
    return null;
  }
  const centres = Array.from({ length: bins.bars }, (_, bar) => bins.low + (bar + 0.5) * bins.step);
  const trace = (list, name, colour) => ({
    type: "bar",
    x: centres,
    y: counted(list, bins),
    name,
    marker: { color: colour },
    width: bins.step * 0.94,
    hovertemplate: `margin %{x:.3g}<br>%{y} ${name}<extra></extra>`,
  });
  const listed = suspects.map((suspect) => page.margins[suspect.row]).filter(isNumber);
  const annotations = isNumber(page.truncation)
    ? [
        {
          x: page.truncation,
          xanchor: "left",
          yref: "paper",
          y: 1,
          yanchor: "top",
          text: ` truncation ${brief(page.truncation)}`,
          showarrow: false,
          bgcolor: isDark() ? "#14171a" : "#ffffff",
        },
      ]
    : [];
  const box = byId("margins");
  const layout = chartLayout({
    barmode: "overlay",
    shapes: marginShapes(),
    annotations,
    hovermode: "closest",
    dragmode: false,
    ...sizeOf(box),
    xaxis: {
      ...axisLayout("functional margin, out of sample", [bins.low - bins.step, bins.low + bins.step * (bins.bars + 1)]),
      fixedrange: true,
    },
    yaxis: {
      title: { text: "rows" },
      type: byId("log").checked ? "log" : "linear",
      gridcolor: lineOf(),
      tickfont: { color: mutedOf() },
      fixedrange: true,
      rangemode: "tozero",
      zeroline: false,
    },
  });
  const [all, suspect] = isDark() ? ["#5b7086", "#ff8f4a"] : ["#a9bccd", "#b34700"];
  byId("margins-note").textContent = marginsNote();
  return Plotly.react(box, [trace(margins, "rows", all), trace(listed, "rows to look at", suspect)], layout, {
    ...chartConfig,
    displayModeBar: false,
  });
}

function marginsNote() {
  const wrong = margins.filter((margin) => margin < 0).length;
  const cut = page.truncation;
  const beyond = isNumber(cut)
    ? ` ${count(margins.filter((margin) => margin <= cut).length)} lie beyond the truncation ${brief(cut)} (dashed line).`
    : "";
  return (
    `Of ${plural(margins.length, "row")}, ${count(wrong)} have a negative margin: the model, fitted without them, contradicts their label.${beyond}` +
    " Strong bars: the rows to look at. Solid line: the chosen row. The outermost bars hold everything further out."
  );
}

// Soon, so that a held key does not wait for the chart.
function markMargin() {
  clearTimeout(markTimer);
  markTimer = setTimeout(() => {
    if (bins && byId("margins")._fullLayout) void Plotly.relayout("margins", { shapes: marginShapes() });
  }, 120);
}

// A square table over classes; `shade` from 0 to 1.
function showMatrix(id, matrix, { text, shade, act }) {
  const table = byId(id);
  if (!matrix.length) {
    table.replaceChildren(el("caption", {}, "Not available."));
    return;
  }
  if (page.classes.length > MATRIX_CLASSES) return showPairs(table, matrix, text);
  const names = page.classes.map((name) => el("th", { scope: "col" }, shortened(name, 16)));
  const lines = matrix.map((line, given) => {
    const cells = line.map((value, other) => matrixCell(text(value), shade(value, given, other), given, other, act));
    return el("tr", {}, el("th", { scope: "row" }, shortened(page.classes[given], 24)), ...cells);
  });
  table.replaceChildren(
    el("thead", {}, el("tr", {}, el("td", { className: "corner" }), ...names)),
    el("tbody", {}, ...lines),
  );
}

function matrixCell(text, shade, given, other, act) {
  const cell = el("td", { className: given === other ? "own" : "" });
  // at most 0.38: the text stays readable on it
  if (shade > 0) cell.style.backgroundColor = `rgba(var(--shade), ${(0.06 + 0.32 * Math.min(1, shade)).toFixed(3)})`;
  cell.append(act && given !== other && act.has(given, other) ? filterButton(text, given, other) : text);
  return cell;
}

function filterButton(text, given, other) {
  const button = el("button", { type: "button" }, text);
  button.setAttribute(
    "aria-label",
    visible(`${text}: list the suspects given ${className(given)} that look like ${className(other)}`),
  );
  button.addEventListener("click", () => {
    byId("filters").reset();
    byId("given").value = String(given);
    byId("suggested").value = String(other);
    render();
    byId("suspects").scrollIntoView({ block: "nearest" });
    byId("suspects").focus();
    announce(countLine());
  });
  return button;
}

// With many classes, the largest entries off the diagonal.
function showPairs(table, matrix, text) {
  const entries = [];
  matrix.forEach((line, given) =>
    line.forEach((value, other) => given !== other && value > 0 && entries.push([value, given, other])),
  );
  entries.sort((a, b) => b[0] - a[0]);
  const lines = entries
    .slice(0, PAIRS)
    .map(([value, given, other]) =>
      el(
        "tr",
        {},
        el("th", { scope: "row" }, shortened(className(given))),
        el("th", {}, shortened(className(other))),
        el("td", {}, text(value)),
      ),
    );
  const note = `The ${Math.min(PAIRS, entries.length)} largest of ${count(entries.length)} pairs of different classes.`;
  table.replaceChildren(el("caption", { className: "note" }, note), el("tbody", {}, ...lines));
}

function showMatrices() {
  const listed = new Set(suspects.map((suspect) => page.labels[suspect.row] + " " + suspect.suggested));
  const sums = page.confusion.map((line) => line.reduce((sum, value) => sum + value, 0));
  showMatrix("confusion", page.confusion, {
    text: count,
    shade: (value, given) => value / Math.max(1, sums[given]),
    act: { has: (given, other) => listed.has(given + " " + other) },
  });
  // shares of other classes are small: shaded against the largest of them
  let largest = 1e-12;
  page.noise.forEach((line, given) =>
    line.forEach((value, other) => {
      if (other !== given && value > largest) largest = value;
    }),
  );
  showMatrix("noise", page.noise, {
    text: (value) => percent(value, 1),
    shade: (value, given, other) => (given === other ? 0 : value / largest),
  });
}
