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
