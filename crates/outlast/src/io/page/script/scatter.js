// The map of all rows. Plotly has the axes, zoom and pan; the rows are drawn on two canvases below it, one for all and one
// for the suspects, so that tens of thousands of rows cost a few milliseconds and need no graphics card.

// After Okabe and Ito: told apart by colour-blind readers; beyond the eighth class the shape tells.
const LIGHT = ["#0072b2", "#d55e00", "#00805e", "#b3588c", "#946600", "#2f8fc4", "#6a4fb0", "#4d4d4d"];
const DARK = ["#56b4e9", "#ff8f4a", "#2fc596", "#e6a0c8", "#f0e442", "#9fc7ff", "#b9a6f5", "#d0d0d0"];
const SHAPES = ["circle", "square", "diamond", "triangle", "cross", "plate"];

const darkMedia = window.matchMedia("(prefers-color-scheme: dark)");
let printing = false;
const isDark = () => darkMedia.matches && !printing;
const inkOf = () => (isDark() ? "#ffffff" : "#000000");
const mutedOf = () => (isDark() ? "#a9b1ba" : "#55606b");
const lineOf = () => (isDark() ? "#383f46" : "#d3d9df");
const colourOf = (code) => (isDark() ? DARK : LIGHT)[code % LIGHT.length];
const shapeOf = (code) => SHAPES[code % SHAPES.length];

// Plotly reads tags, entities and links in its texts: none of the data's may be left.
function forPlotly(text, longest = 48) {
  const signs = [...text.slice(0, 4 * longest)];
  const short = signs.length > longest ? signs.slice(0, longest).join("") + "…" : text;
  const plain = visible(short).replace(/[\s\p{Cc}]+/gu, " ");
  return plain.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

const hidden = new Set();
const map = {
  x: null,
  y: null,
  names: ["", ""],
  px: new Float32Array(rows),
  py: new Float32Array(rows),
  near: null,
  ready: false,
};

function axisOptions() {
  const options = [
    { name: "Component 1", values: () => Float64Array.from(page.components[0], finite) },
    { name: "Component 2", values: () => Float64Array.from(page.components[1], finite) },
    { name: "Margin", values: () => Float64Array.from(page.margins, finite) },
    { name: "Score", values: () => Float64Array.from(page.scores, finite) },
  ];
  for (const column of columns) {
    if (page.numeric[column]) options.push({ name: columnName(column), column, values: () => numbersOf(column) });
  }
  return options;
}
const axes = axisOptions();

function fillAxes() {
  for (const [id, first] of [
    ["across", 0],
    ["up", 1],
  ]) {
    const options = axes.map((axis, index) =>
      el("option", { value: String(index) }, named(axis.name)),
    );
    byId(id).replaceChildren(...options);
    byId(id).value = String(first);
    byId(id).addEventListener("change", () => void showMap());
  }
}

function rangeOf(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low > high) return [0, 1];
  const room = (high - low) * 0.04 || Math.max(1e-6, Math.abs(high) * 0.05);
  return [low - room, high + room];
}

function axisLayout(title, range) {
  return {
    title: { text: title, font: { size: 13 }, standoff: 8 },
    range,
    autorange: false,
    zeroline: false,
    gridcolor: lineOf(),
    linecolor: lineOf(),
    tickfont: { color: mutedOf() },
    ticks: "",
    fixedrange: false,
    hoverformat: ".4g",
  };
}

const MARGIN = { l: 56, r: 12, t: 8, b: 46 };

function chartLayout(more) {
  return {
    margin: MARGIN,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    showlegend: false,
    font: { color: isDark() ? "#e8eaed" : "#1a1d21", size: 12, family: "system-ui, sans-serif" },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: mutedOf(), activecolor: inkOf(), orientation: "v" },
    ...more,
  };
}

const chartConfig = {
  displaylogo: false,
  responsive: false,
  showTips: false,
  doubleClick: "reset",
  showAxisDragHandles: false,
  modeBarButtons: [["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"]],
};

function showMap() {
  const chosen = [axes[Number(byId("across").value)], axes[Number(byId("up").value)]];
  [map.x, map.y] = chosen.map((axis) => axis.values());
  const touch = window.matchMedia("(pointer: coarse)").matches;
  const layout = chartLayout({
    // the buttons stand beside the points, not on them
    margin: { ...MARGIN, r: 36 },
    xaxis: axisLayout(forPlotly(chosen[0].name), rangeOf(map.x)),
    yaxis: axisLayout(forPlotly(chosen[1].name), rangeOf(map.y)),
    hovermode: false,
    dragmode: touch ? false : "zoom",
    ...sizeOf(byId("map-plot")),
  });
  // an empty trace: plotly draws no axes without one
  const nothing = { type: "scatter", mode: "markers", x: [null], y: [null], hoverinfo: "skip" };
  const drawn = Plotly.react("map-axes", [nothing], layout, chartConfig).then(drawMap);
  if (!map.ready) listenToMap();
  const missing = map.x.reduce((sum, value, row) => sum + (Number.isNaN(value) || Number.isNaN(map.y[row]) ? 1 : 0), 0);
  byId("map-plot").setAttribute(
    "aria-label",
    visible(
      `Scatter plot of ${plural(rows, "row")}: ${chosen[0].name} across, ${chosen[1].name} up. The table lists the suspects.`,
    ),
  );
  byId("map-note").textContent =
    `Ringed points are the rows to look at; choose one here or in the table. Colour and shape show the given class.` +
    (missing ? ` ${plural(missing, "row")} without a number here ${missing === 1 ? "is" : "are"} not drawn.` : "");
  // print does not wait for promises
  if (printing) drawMap();
  return drawn;
}

// On paper every chart has the size that the style gives it there.
const sizeOf = (element) =>
  printing ? { width: 640, height: 330 } : { width: element.clientWidth, height: element.clientHeight };

function listenToMap() {
  map.ready = true;
  const chart = byId("map-axes");
  chart.on("plotly_relayouting", drawMap);
  chart.on("plotly_relayout", drawMap);
  let pressed = null;
  chart.addEventListener("pointerdown", (event) => (pressed = [event.clientX, event.clientY]), true);
  window.addEventListener(
    "pointerup",
    (event) => {
      if (!pressed) return;
      const moved = Math.hypot(event.clientX - pressed[0], event.clientY - pressed[1]);
      pressed = null;
      const row = moved < 4 ? nearestRow(event) : null;
      if (row !== null && suspectOf.has(row)) pickFromMap(row);
    },
    true,
  );
  chart.addEventListener("pointermove", (event) => pointAt(nearestRow(event), event));
  chart.addEventListener("pointerleave", () => pointAt(null));
}

function pickFromMap(row) {
  if (!shown.some((suspect) => suspect.row === row)) {
    byId("filters").reset();
    render();
  }
  const at = shown.findIndex((suspect) => suspect.row === row);
  if (at >= limit) {
    limit = at + 1;
    render();
  }
  choose(row, { scroll: true });
}

// The suspect within reach of the pointer, else any row.
function nearestRow(event) {
  const box = byId("map-plot").getBoundingClientRect();
  const [x, y] = [event.clientX - box.left, event.clientY - box.top];
  const frame = frameOf();
  if (!frame || x < frame.l || y < frame.t || x > frame.l + frame.w || y > frame.t + frame.h) return null;
  const reach = event.pointerType === "touch" ? 20 : 9;
  let [best, distance] = [null, reach * reach];
  const test = (row, weight) => {
    if (hidden.has(page.labels[row])) return;
    const d = weight * ((map.px[row] - x) ** 2 + (map.py[row] - y) ** 2);
    if (d < distance) [best, distance] = [row, d];
  };
  for (const suspect of suspects) test(suspect.row, 1);
  if (best === null) for (let row = 0; row < rows; row++) test(row, 3);
  return best;
}

function pointAt(row, event) {
  const tip = byId("tip");
  byId("map-axes").classList.toggle("pointed", row !== null && suspectOf.has(row));
  if (row !== map.near) {
    hoverRow(row);
    tip.hidden = row === null;
    if (row !== null) {
      const lines = [`Row ${row + 1}, given `, shortened(className(page.labels[row]), 30)];
      const suspect = suspectOf.get(row);
      if (suspect && suspect.suggested !== page.labels[row])
        lines.push(", looks like ", shortened(className(suspect.suggested), 30));
      lines.push(`, margin ${brief(page.margins[row])}`);
      tip.replaceChildren(...lines);
    }
  }
  if (row === null) return;
  const box = byId("map-plot").getBoundingClientRect();
  const left = Math.min(event.clientX - box.left + 12, box.width - tip.offsetWidth - 4);
  tip.style.left = Math.max(0, left) + "px";
  tip.style.top = event.clientY - box.top + 14 + "px";
}

// A row pointed at, here or in the table, shows in both.
function hoverRow(row) {
  const old = elements.get(map.near);
  if (old) old.classList.remove("near");
  map.near = row;
  const element = elements.get(row);
  if (element) element.classList.add("near");
  drawSuspects();
}

function frameOf() {
  const full = byId("map-axes")._fullLayout;
  if (!full || !full._size) return null;
  return { ...full._size, x: full.xaxis.range, y: full.yaxis.range };
}

// A cleared canvas in device pixels, clipped to the inside of the axes.
function cleared(id, frame) {
  const canvas = byId(id);
  const size = sizeOf(byId("map-plot"));
  const scale = printing ? 2 : window.devicePixelRatio || 1;
  const [width, height] = [Math.round(size.width * scale), Math.round(size.height * scale)];
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  const brush = canvas.getContext("2d");
  brush.setTransform(1, 0, 0, 1, 0, 0);
  brush.clearRect(0, 0, width, height);
  brush.setTransform(scale, 0, 0, scale, 0, 0);
  brush.beginPath();
  brush.rect(frame.l, frame.t, frame.w, frame.h);
  return brush;
}

function addShape(brush, shape, x, y, r) {
  switch (shape) {
    case "circle":
      brush.moveTo(x + r, y);
      brush.arc(x, y, r, 0, 2 * Math.PI);
      break;
    case "square":
      brush.rect(x - 0.88 * r, y - 0.88 * r, 1.76 * r, 1.76 * r);
      break;
    case "plate":
      brush.rect(x - 1.2 * r, y - 0.6 * r, 2.4 * r, 1.2 * r);
      break;
    default: {
      const corners = {
        diamond: [
          [0, -1.25],
          [1.25, 0],
          [0, 1.25],
          [-1.25, 0],
        ],
        triangle: [
          [0, -1.2],
          [1.1, 0.85],
          [-1.1, 0.85],
        ],
        cross: [
          [-0.4, -1.2],
          [0.4, -1.2],
          [0.4, -0.4],
          [1.2, -0.4],
          [1.2, 0.4],
          [0.4, 0.4],
          [0.4, 1.2],
          [-0.4, 1.2],
          [-0.4, 0.4],
          [-1.2, 0.4],
          [-1.2, -0.4],
          [-0.4, -0.4],
        ],
      }[shape];
      corners.forEach(([dx, dy], at) => brush[at ? "lineTo" : "moveTo"](x + r * dx, y + r * dy));
      brush.closePath();
    }
  }
}

function drawMap() {
  const frame = frameOf();
  if (!frame || !map.x) return;
  const [kx, ky] = [frame.w / (frame.x[1] - frame.x[0]), frame.h / (frame.y[1] - frame.y[0])];
  for (let row = 0; row < rows; row++) {
    map.px[row] = frame.l + (map.x[row] - frame.x[0]) * kx;
    map.py[row] = frame.t + frame.h - (map.y[row] - frame.y[0]) * ky;
  }
  if (!printing) drawRows(cleared("map-rows", frame), frame);
  drawSuspects();
}

function drawRows(brush, frame) {
  brush.save();
  brush.clip();
  brush.globalAlpha = rows > 5000 ? 0.45 : rows > 1000 ? 0.6 : 0.75;
  const size = rows > 5000 ? 2 : rows > 1000 ? 2.6 : 3.4;
  page.classes.forEach((_, code) => {
    if (hidden.has(code)) return;
    const picture = stamp(code, size);
    for (const row of rowsOf(code)) {
      const [x, y] = [map.px[row], map.py[row]];
      if (
        suspectOf.has(row) ||
        !(x > frame.l - 5 && x < frame.l + frame.w + 5 && y > frame.t - 5 && y < frame.t + frame.h + 5)
      )
        continue;
      brush.drawImage(picture, x - STAMP / 2, y - STAMP / 2, STAMP, STAMP);
    }
  });
  brush.restore();
}

// A class's sign as a picture: copying it is much cheaper than filling a path again.
const STAMP = 12;
function stamp(code, size) {
  const picture = el("canvas", { width: 4 * STAMP, height: 4 * STAMP });
  const brush = picture.getContext("2d");
  brush.scale(4, 4);
  brush.fillStyle = colourOf(code);
  brush.beginPath();
  addShape(brush, shapeOf(code), STAMP / 2, STAMP / 2, size);
  brush.fill();
  return picture;
}

// Undecided suspects stand out; those decided step back.
function drawSuspects() {
  const frame = map.x && frameOf();
  if (!frame) return;
  const brush = cleared("map-suspects", frame);
  // of two canvases on top of each other Chromium prints one or both, as it likes: on paper there is one (page.css)
  if (printing) drawRows(brush, frame);
  brush.beginPath();
  brush.rect(frame.l, frame.t, frame.w, frame.h);
  brush.save();
  brush.clip();
  // the more there are, the smaller: they must not hide each other
  const [size, line] = suspects.length > 2000 ? [2.3, 0.6] : suspects.length > 200 ? [3.6, 1.1] : [4.5, 1.3];
  for (const undecided of [false, true]) {
    for (const suspect of suspects)
      if (!marks.has(suspect.row) === undecided) drawSuspect(brush, suspect.row, undecided ? 1 : 0.35, size, line);
  }
  if (map.near !== null) drawSuspect(brush, map.near, 1, 6.5, 2.2);
  if (current !== null && !printing && !Number.isNaN(map.px[current] + map.py[current])) drawCurrent(brush, frame);
  brush.restore();
}

function drawSuspect(brush, row, alpha, size, line) {
  const code = page.labels[row];
  if (hidden.has(code) || Number.isNaN(map.px[row] + map.py[row])) return;
  brush.globalAlpha = alpha;
  brush.beginPath();
  addShape(brush, shapeOf(code), map.px[row], map.py[row], size);
  brush.fillStyle = colourOf(code);
  brush.fill();
  brush.lineWidth = line;
  brush.strokeStyle = inkOf();
  brush.stroke();
}

function drawCurrent(brush, frame) {
  const [x, y] = [map.px[current], map.py[current]];
  brush.globalAlpha = 1;
  brush.strokeStyle = inkOf();
  brush.lineWidth = 1;
  brush.setLineDash([3, 4]);
  brush.beginPath();
  brush.moveTo(frame.l, y);
  brush.lineTo(x - 12, y);
  brush.moveTo(x + 12, y);
  brush.lineTo(frame.l + frame.w, y);
  brush.moveTo(x, frame.t);
  brush.lineTo(x, y - 12);
  brush.moveTo(x, y + 12);
  brush.lineTo(x, frame.t + frame.h);
  brush.stroke();
  brush.setLineDash([]);
  drawSuspect(brush, current, 1, 6.5, 2);
  brush.lineWidth = 2;
  brush.beginPath();
  brush.arc(x, y, 11, 0, 2 * Math.PI);
  brush.stroke();
}

function buildLegend() {
  const counts = page.classes.map((_, code) => rowsOf(code).length);
  const buttons = page.classes.map((name, code) => {
    const canvas = el("canvas", { width: 28, height: 28, ariaHidden: "true" });
    canvas.style.cssText = "width:14px;height:14px";
    const button = el(
      "button",
      { type: "button" },
      canvas,
      name === "" ? "(empty)" : bdi(name),
      el("span", { className: "muted" }, count(counts[code])),
    );
    button.setAttribute("aria-pressed", String(!hidden.has(code)));
    button.addEventListener("click", () => {
      if (!hidden.delete(code)) hidden.add(code);
      button.setAttribute("aria-pressed", String(!hidden.has(code)));
      drawMap();
    });
    const brush = canvas.getContext("2d");
    brush.fillStyle = colourOf(code);
    brush.beginPath();
    addShape(brush, shapeOf(code), 14, 14, 10);
    brush.fill();
    return button;
  });
  byId("legend").replaceChildren(...buttons);
}
