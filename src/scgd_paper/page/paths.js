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
