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
