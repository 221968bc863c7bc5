"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const state = { statistic: "panel", x: "pass", y: "log", xscale: "panel", settings: data.settings[0],
                published: "on", hidden: new Set() };
const names = { pass: "passes over the coordinates", queries: "function queries", seconds: "seconds of computing" };
// Plotly reads tags in its texts: what a table holds is shown letter by letter.
const safe = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/%(?=\{)/g, "%\u200b");
for (const look of Object.values(data.methods)) look.plot = safe(look.label);
const cards = [...document.querySelectorAll(".card[data-panel]")];
const drawn = new Set();

function theme() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  return { ink: colour("--ink"), soft: colour("--soft"), line: colour("--line"), level: colour("--level"), card: colour("--card"),
           font: "inherit" };
}

// An exported picture stands alone, on white paper, whatever the page looks like.
const paper = { ink: "#1c1e21", soft: "#3f454c", line: "#dfe2e6", level: "#b9c0c9", card: "#ffffff",
                font: "Helvetica, Arial, sans-serif" };

function faded(colour, alpha) {
  const n = parseInt(colour.slice(1), 16);
  return `rgba(${n >> 16}, ${(n >> 8) & 255}, ${n & 255}, ${alpha})`;
}

// The statistic that is drawn: the reader's choice or, by panel, the median where single runs decide the mean.
const statisticOf = (panel) => (state.statistic === "panel" ? panel.statistic : state.statistic);

function panelOf(card) { return data.panels[card.dataset.panel]; }

function settingsOf(panel) {
  const known = Object.keys(panel.curves);
  return known.includes(state.settings) ? state.settings : known[0];
}

// Whether published means stand beside our medians, because nothing else was stored.
function meansBeside(panel) {
  const known = Object.values(panel.published || {}).flatMap(Object.values).flatMap(Object.values);
  return settingsOf(panel) === "published" && statisticOf(panel) === "median" && known.some((f) => f.median === undefined);
}

// Says which settings a card shows, and why where others were asked for.
function nameSettings(card, panel) {
  const place = card.querySelector(".which"), here = settingsOf(panel), other = state.settings !== here;
  const why = panel.known.includes(state.settings) ? `no ${state.settings} run here` : `no ${state.settings} ones are known`;
  const tails = state.statistic === "panel" && panel.statistic === "median" && panel.kind !== "path";
  place.textContent = `${here} settings${other ? ` (${why})` : ""}${tails ? " · median and quartiles: single runs decide a mean here" : ""}`
    + (meansBeside(panel) ? " · published figures are means" : "");
  place.classList.toggle("other", other && panel.known.includes(state.settings));
}

function measureOf(card, panel) {
  const known = Object.keys(panel.curves[settingsOf(panel)]);
  return known.includes(card.dataset.measure) ? card.dataset.measure : known[0];
}

function isLinear(panel, measure) { return panel.linear.includes(measure) || state.y === "linear"; }

function topOf(panel, settings, measure, kind) {
  const limit = panel.limits[settings][measure];
  return limit ? limit[kind] : Infinity;
}

const middleOf = (curve, frame) => (frame.statistic === "mean" ? curve.mean : curve.median);
const shown = (value) => (value === null ? "∞" : value !== 0 && (value >= 1e4 || value < 1e-3)
  ? value.toExponential(2) : Number(value.toPrecision(3)).toString());
const above = (value, top) => value === null || value > top;
const borders = { solid: "solid", dash: "dashed", dot: "dotted" };

// What leaves a chart leaves it through the top; a null would tear the band's polygon apart.
function clipped(values, top) {
  return values.map((v) => (v === null && top < Infinity ? 10 * top : v === null ? null : Math.min(v, 10 * top)));
}

// The band around a curve; none where the curve itself is above the chart, and none below zero on a log axis.
function band(x, low, high, middle, frame) {
  const positive = low.concat(middle).filter((v) => v > 0), floor = Math.min(...positive);
  const edge = (values) => clipped(values, frame.top).map((v, i) =>
    (above(middle[i], frame.top) ? middle[i] : frame.linear || v > 0 ? v : floor));
  return { x: x.concat([...x].reverse()), y: edge(high).concat(edge(low).reverse()) };
}

// A curve and the band around it, apart: all bands are drawn first, so that none hides a line.
function curveTraces(method, curve, axis, frame) {
  const look = data.methods[method], middles = middleOf(curve, frame);
  const onX = (v) => frame.xscale === "linear" || v > 0, onY = (v) => frame.linear || v === null || v > 0;
  const inside = curve[axis].map((_, i) => i).filter((i) => onX(curve[axis][i]) && onY(middles[i]));
  const pick = (values) => inside.map((i) => values[i]);
  const x = pick(curve[axis]), exact = pick(middles), middle = clipped(exact, frame.top);
  const [low, high] = frame.statistic === "mean" ? [curve.below, curve.above] : [curve.q25, curve.q75];
  const bands = curve.runs < 2 ? [] : [{ ...band(x, pick(low), pick(high), middle, frame), fill: "toself",
    fillcolor: faded(look.colour, 0.14), line: { width: 0 }, mode: "lines", hoverinfo: "skip",
    showlegend: false, name: look.plot, meta: "band" }];
  const line = { x, y: middle, mode: x.length < 3 ? "lines+markers" : "lines", name: look.plot, showlegend: false,
    line: { color: look.colour, width: 2.2, dash: look.dash },
    meta: "method", customdata: exact.map(shown), hovertemplate: `${look.plot}: %{customdata}<extra></extra>` };
  return { bands, line };
}

function publishedTraces(method, known, axis, queriesPerPass, colours, statistic) {
  const look = data.methods[method], factor = axis === "queries" ? queriesPerPass : 1, traces = [];
  const pick = (m) => (statistic === "mean" || m.median === undefined ? m.mean : m.median);
  if (known.curve && axis !== "seconds") {
    traces.push({ x: known.curve.pass.map((k) => k * factor), y: pick(known.curve), mode: "lines",
      name: look.plot, showlegend: false, opacity: 0.75,
      line: { color: look.colour, width: 1.3, dash: "longdashdot" }, meta: "published curve",
      hovertemplate: `${look.plot}, published: %{y:.3~g}<extra></extra>` });
  }
  if (known.final && axis !== "seconds") {
    traces.push({ x: [known.final.pass * factor], y: [pick(known.final)], mode: "markers",
      name: look.plot, showlegend: false, cliponaxis: false,
      marker: { color: look.colour, size: 9, symbol: "diamond", line: { color: colours.card, width: 1.5 } },
      meta: "published final",
      hovertemplate: `${look.plot}, published final: %{y:.3~g}<extra></extra>` });
  }
  return traces;
}

// Labels of a log axis: powers of ten or, where those are few, 1, 2 and 5 times them, in full.
function logTicks(low, high) {
  const decades = Math.log10(high / low), values = [];
  if (!(decades > 0.7 && decades < 9)) return {};
  if (decades > 2) return { dtick: 1 };
  for (let k = Math.floor(Math.log10(low)); k <= Math.ceil(Math.log10(high)); k++) {
    for (const digit of [1, 2, 5]) values.push(Number(`${digit}e${k}`));
  }
  return { tickvals: values };
}

// The range of the y axis: left to plotly unless something leaves the chart.
function rangeOf(traces, frame) {
  const values = traces.flatMap((t) => t.y).filter((v) => v !== null && (frame.linear || v > 0));
  const low = Math.min(...values), high = Math.max(...values);
  const range = high <= frame.top ? undefined
    : frame.linear ? [Math.min(0, low), frame.top] : [Math.log10(low) - 0.1, Math.log10(frame.top)];
  return { range, ...(frame.linear ? {} : logTicks(low, Math.min(high, frame.top))) };
}

// The methods that end above the chart, and where.
function endOutside(curves, frame) {
  return Object.entries(curves).filter(([method]) => !state.hidden.has(method)).flatMap(([method, curve]) => {
    const look = data.methods[method], last = middleOf(curve, frame).at(-1);
    const what = above(last, frame.diverged) && !data.references.includes(method) ? `diverged, at ${shown(last)}` : `at ${shown(last)}`;
    return above(last, frame.top) ? [{ look, text: `${look.label} (${what})` }] : [];
  });
}

function nameOutside(card, outside) {
  const place = card.querySelector(".outside");
  place.hidden = !outside.length;
  place.replaceChildren("↑ Ends above the chart: ", ...outside.flatMap(({ look, text }, i) => {
    const line = document.createElement("i");
    line.style.borderTop = `3px ${borders[look.dash]} ${look.colour}`;
    return i ? [", ", line, text] : [line, text];
  }));
}

function layoutFor(panel, measure, axis, traces, frame, colours) {
  const line = { gridcolor: colours.line, zerolinecolor: colours.line, linecolor: colours.line, automargin: true };
  const x = traces.flatMap((trace) => trace.x).filter((v) => v > 0);
  return {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", hovermode: "x unified",
    font: { color: colours.soft, size: 12, family: colours.font }, margin: { l: 62, r: 12, t: 8, b: 44 },
    hoverlabel: { bgcolor: colours.card, bordercolor: colours.line, font: { color: colours.ink } },
    xaxis: { ...line, type: frame.xscale, ...(frame.xscale === "log" ? logTicks(Math.min(...x), Math.max(...x)) : {}), title: { text: safe(panel.xlabel && axis === "pass" ? panel.xlabel : names[axis]) } },
    yaxis: { ...line, type: frame.linear ? "linear" : "log", exponentformat: "power", ...rangeOf(traces, frame),
             title: { text: safe(data.measures[measure] || measure) } },
  };
}

const config = (name) => ({ responsive: true, displaylogo: false, displayModeBar: false,
  toImageButtonOptions: { filename: name } });

function figure(card, colours) {
  const panel = panelOf(card), settings = settingsOf(panel), measure = measureOf(card, panel);
  const curves = panel.curves[settings][measure], axis = state.x;
  let traces = [];
  if (panel.kind === "path") return pathFigure(card, panel, settings, colours);
  const linear = isLinear(panel, measure);
  const frame = { linear, statistic: statisticOf(panel), xscale: state.xscale === "panel" ? panel.xscale : state.xscale,
                  top: topOf(panel, settings, measure, linear ? "linear" : "log"),
                  diverged: topOf(panel, settings, measure, "log") };
  const visible = Object.entries(curves).filter(([method]) => !state.hidden.has(method));
  const pairs = visible.map(([method, curve]) => curveTraces(method, curve, axis, frame));
  traces = [...pairs.flatMap((pair) => pair.bands), ...pairs.map((pair) => pair.line)];
  const known = (panel.published || {})[measure] || {};
  if (settings === "published" && state.published === "on") {
    for (const [method, figures] of Object.entries(known)) {
      if (!state.hidden.has(method) && curves[method]) {
        const c = curves[method], last = c.pass.length - 1, ratio = c.pass[last] ? c.queries[last] / c.pass[last] : 1;
        traces = traces.concat(publishedTraces(method, figures, axis, ratio, colours, frame.statistic));
      }
    }
  }
  return { traces, layout: layoutFor(panel, measure, axis, traces, frame, colours), outside: endOutside(curves, frame) };
}

function draw(card) {
  const { traces, layout, outside } = figure(card, theme());
  Plotly.react(card.querySelector(".chart"), traces, layout, config(card.dataset.panel));
  nameOutside(card, outside);
  drawn.add(card);
}

function pathFigure(card, panel, settings, colours) {
  const line = { showgrid: false, zeroline: false, automargin: true, constrain: "domain" };
  const traces = [{ ...panel.contour, type: "contour", showscale: false, contours: { coloring: "lines" },
    colorscale: [[0, colours.level], [1, colours.level]], hoverinfo: "skip", ncontours: 18, line: { width: 1 } }];
  const upto = Number(card.querySelector("[data-upto]").value);
  for (const [method, path] of Object.entries(panel.paths[settings])) {
    if (state.hidden.has(method)) continue;
    const look = data.methods[method], n = path.pass.filter((k) => k <= upto).length;
    traces.push({ x: path.x.slice(0, n), y: path.y.slice(0, n), mode: "lines+markers", name: look.plot,
      showlegend: false, meta: "method", marker: { size: path.pass.slice(0, n).map((_, i) => (i === n - 1 ? 10 : 4)), line: { width: 0 }, opacity: 1 },
      line: { color: look.colour, width: 1.6, dash: look.dash },
      hovertemplate: `${look.plot}: (%{x:.3f}, %{y:.3f})<extra></extra>` });
  }
  return { traces, outside: [], layout: {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: colours.soft, family: colours.font },
    margin: { l: 48, r: 12, t: 8, b: 40 },
    xaxis: { ...line, range: panel.range[0], title: { text: "x" } },
    yaxis: { ...line, range: panel.range[1], scaleanchor: "x", title: { text: "y" } },
  } };
}

function showPass(card, value) {
  const slider = card.querySelector("[data-upto]");
  slider.value = value;
  card.querySelector("output").textContent = `pass ${slider.value}`;
  draw(card);
}

function play(card) {
  const last = Number(card.querySelector("[data-upto]").max);
  let k = 0;
  clearInterval(card.timer);
  card.timer = setInterval(() => {
    showPass(card, k);
    k += last / 120;
    if (k > last) { clearInterval(card.timer); showPass(card, last); }
  }, 50);
}

// The laws over the pixels: one square per method, on one scale of colours.
function lawPictures(laws, side, width) {
  const methods = Object.keys(laws).filter((method) => !state.hidden.has(method));
  const bar = 64, title = 26, columns = Math.min(methods.length, Math.max(2, Math.floor((width - bar) / 150)));
  const square = (width - bar) / columns - 10, n = Math.ceil(methods.length / columns), height = n * (square + title);
  // Colours follow the logarithm, from a tenth of uniform on: softmax laws hold a few pixels at a hundred times uniform.
  const ticks = [0.1, 1, 10, 100, 1000];
  const layout = { annotations: [], height, margin: { l: 0, r: 0, t: 0, b: 0 },
    coloraxis: { colorscale: "Viridis", cmin: -1, colorbar: { thickness: 10, outlinewidth: 0, x: 1 - (bar - 8) / width, len: 1,
      title: { text: "p × weight", side: "right" }, tickvals: ticks.map(Math.log10), ticktext: ticks } } };
  const traces = methods.map((method, i) => {
    const left = (i % columns) * (square + 10), top = Math.floor(i / columns) * (square + title) + title;
    const weights = [], id = i ? i + 1 : "";
    for (let r = 0; r < side; r++) weights.push(laws[method].weight.slice(r * side, (r + 1) * side));
    layout[`xaxis${id}`] = { domain: [left / width, (left + square) / width], visible: false, anchor: `y${id}` };
    layout[`yaxis${id}`] = { domain: [1 - (top + square) / height, 1 - top / height], visible: false,
                             autorange: "reversed", anchor: `x${id}` };
    layout.annotations.push({ text: data.methods[method].plot.replace("musketeer ", ""), x: (left + square / 2) / width,
      y: 1 - top / height, xref: "paper", yref: "paper", xanchor: "center", yanchor: "bottom", showarrow: false, font: { size: 12 } });
    return { type: "heatmap", z: weights.map((row) => row.map((w) => Math.log10(Math.max(w, 0.1)))), customdata: weights,
             xaxis: `x${id}`, yaxis: `y${id}`, coloraxis: "coloraxis",
             hovertemplate: `row %{y}, column %{x}: %{customdata:.3~g}<extra>${data.methods[method].plot}</extra>` };
  });
  return { traces, layout };
}

function drawLaw(card) {
  const panel = panelOf(card), laws = panel.laws[settingsOf(panel)] || {}, colours = theme();
  const line = { gridcolor: colours.line, zerolinecolor: colours.line, automargin: true };
  const place = card.querySelector(".law");
  const shared = { paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", margin: { l: 62, r: 12, t: 22, b: 44 },
    font: { color: colours.soft, size: 12, family: "inherit" } };
  if (panel.picture) {
    const { traces, layout } = lawPictures(laws, panel.picture, place.clientWidth);
    place.style.height = `${layout.height}px`;
    Plotly.react(place, traces, { ...shared, ...layout }, config("sampling-law"));
    return;
  }
  const traces = Object.entries(laws).filter(([m]) => !state.hidden.has(m)).map(([method, law]) => ({
    x: law.weight.map((_, k) => k + 1), y: law.weight, mode: "lines", name: data.methods[method].plot,
    showlegend: false, line: { color: data.methods[method].colour, dash: data.methods[method].dash, width: 1.8 },
    hovertemplate: `${data.methods[method].plot}: %{y:.3~g} times as often as uniform<extra></extra>` }));
  Plotly.react(place, traces, { ...shared, hovermode: "x unified",
    hoverlabel: { bgcolor: colours.card, bordercolor: colours.line, font: { color: colours.ink } },
    xaxis: { ...line, title: { text: panel.lawlabel } },
    yaxis: { ...line, type: "log", title: { text: "p × weight" }, exponentformat: "power" },
  }, config("sampling-law"));
}

function refresh() {
  for (const card of drawn) {
    draw(card);
    if (card.querySelector("details.laws[open]")) drawLaw(card);
  }
  for (const card of cards) showSettings(card);
}

function showSettings(card) {
  const settings = settingsOf(panelOf(card));
  nameSettings(card, panelOf(card));
  for (const box of card.querySelectorAll("[data-settings-only]")) box.hidden = box.dataset.settingsOnly !== settings;
}

function press(button) {
  for (const other of button.parentElement.children) other.setAttribute("aria-pressed", String(other === button));
}

function save(text, name, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function csv(card) {
  const panel = panelOf(card), rows = ["panel,settings,measure,method,pass,queries,seconds,mean,std,median,q25,q75,runs"];
  for (const [settings, measures] of Object.entries(panel.curves)) {
    for (const [measure, methods] of Object.entries(measures)) {
      for (const [method, c] of Object.entries(methods)) {
        c.pass.forEach((_, i) => rows.push([card.dataset.panel, settings, measure, method, c.pass[i], c.queries[i],
          c.seconds[i], ...[c.mean, c.std, c.median, c.q25, c.q75].map((v) => v[i] ?? "inf"), c.runs].join(",")));
      }
    }
  }
  return rows.join("\n") + "\n";
}

// What the curves are, in words, for a picture without the page around it.
function caption(card, outside) {
  const panel = panelOf(card), settings = settingsOf(panel), curves = panel.curves[settings][measureOf(card, panel)];
  const runs = Math.max(...Object.values(curves).map((curve) => curve.runs));
  const kind = panel.kind === "path" ? `run 0, up to ${card.querySelector("output").textContent}`
    : `${statisticOf(panel) === "mean" ? "mean and standard deviation" : "median and quartiles"} over ${runs} runs`;
  const lines = [`${settings} settings, ${kind}`];
  for (let i = 0; i < outside.length; i += 2) {
    lines.push(`ends above the chart: ${outside.slice(i, i + 2).map(({ text }) => text).join(", ")}`);
  }
  return lines;
}

function exportFigure(card) {
  const { traces, layout, outside } = figure(card, paper), marks = new Set(traces.map((trace) => trace.meta));
  for (const trace of traces) trace.showlegend = trace.meta === "method";
  const key = { x: [null], y: [null], showlegend: true };
  if (marks.has("published curve")) {
    traces.push({ ...key, mode: "lines", name: "published", line: { color: paper.soft, width: 1.3, dash: "longdashdot" } });
  }
  if (marks.has("published final")) {
    traces.push({ ...key, mode: "markers", name: "published final", marker: { color: paper.soft, size: 9, symbol: "diamond" } });
  }
  const lines = caption(card, outside).map((line) => `<br><span style="font-size: 13px">${safe(line)}</span>`);
  const words = `<b>${safe(card.querySelector("h3").textContent)}</b>${lines.join("")}`;
  return { data: traces, layout: { ...layout, paper_bgcolor: paper.card, plot_bgcolor: paper.card, showlegend: true,
    title: { text: words, font: { size: 18, color: paper.ink }, x: 0.02, xanchor: "left", y: 1, yanchor: "top",
             pad: { t: 28 } },
    margin: { l: 70, r: 20, t: 56 + 24 * lines.length, b: 50 }, legend: { orientation: "h", y: -0.14, yanchor: "top" } } };
}

function exportCard(card, format) {
  const name = card.dataset.panel.replace("/", "-");
  if (format === "csv") return save(csv(card), `${name}.csv`, "text/csv");
  return Plotly.downloadImage(exportFigure(card), { format, filename: name, width: 900, height: 620 });
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  const card = button.closest(".card[data-panel]");
  if (button.dataset.set) { press(button); state[button.dataset.set] = button.value; refresh(); }
  else if (button.dataset.measure) { press(button); card.dataset.measure = button.dataset.measure; draw(card); }
  else if (button.dataset.export) exportCard(card, button.dataset.export);
  else if (button.dataset.play !== undefined) play(card);
  else if (button.dataset.method) {
    const method = button.dataset.method, show = state.hidden.has(method);
    if (show) state.hidden.delete(method); else state.hidden.add(method);
    for (const chip of document.querySelectorAll(`[data-method="${CSS.escape(method)}"]`)) chip.setAttribute("aria-pressed", String(show));
    refresh();
  } else if (button.dataset.theme !== undefined) setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
});

document.addEventListener("input", (event) => {
  const card = event.target.closest(".card[data-panel]");
  if (event.target.dataset.upto === undefined || !card) return;
  clearInterval(card.timer);
  showPass(card, event.target.value);
});

for (const box of document.querySelectorAll("details.laws")) {
  box.addEventListener("toggle", () => { if (box.open) drawLaw(box.closest(".card")); });
}

function setTheme(name) { document.documentElement.dataset.theme = name; refresh(); }
const dark = matchMedia("(prefers-color-scheme: dark)");
document.documentElement.dataset.theme = dark.matches ? "dark" : "light";
dark.addEventListener("change", () => setTheme(dark.matches ? "dark" : "light"));

const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (entry.isIntersecting) { watcher.unobserve(entry.target); draw(entry.target); }
  }
}, { rootMargin: "600px" });
for (const card of cards) { showSettings(card); watcher.observe(card); }
