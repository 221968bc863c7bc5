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
