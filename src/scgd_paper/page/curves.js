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
