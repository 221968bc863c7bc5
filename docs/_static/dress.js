// Inside a picture: the look that the page around it asks for, and one column of panels on a phone.
(function () {
  const LOOKS = {
    light: { ground: "#ffffff", ink: "#2a3f5f", grid: "#e5e9f0" },
    dark: { ground: "#14181e", ink: "#ced6dd", grid: "#2b323b" },
  };
  const NARROW = 560, GAP = 90;
  const pictures = () => Array.from(document.querySelectorAll(".plotly-graph-div"));
  const axes = (picture) =>
    Object.keys(picture._fullLayout).filter((name) => /^[xy]axis[0-9]*$/.test(name));

  function dress(name) {
    const look = LOOKS[name];
    document.documentElement.style.colorScheme = name;
    document.body.style.background = look.ground;
    for (const picture of pictures()) {
      const change = { paper_bgcolor: look.ground, plot_bgcolor: look.ground, "font.color": look.ink };
      for (const axis of axes(picture)) {
        change[axis + ".gridcolor"] = look.grid;
        change[axis + ".linecolor"] = look.grid;
        change[axis + ".zerolinecolor"] = look.grid;
      }
      (picture.layout.annotations || []).forEach((note, k) => {
        if (note.xref === "paper" && note.yref === "paper") {
          change[`annotations[${k}].font.color`] = look.ink;
        }
      });
      Plotly.relayout(picture, change);
    }
  }

  // Panels of one or two columns, as [x axis, y axis], in reading order.
  function panels(picture) {
    const full = picture._fullLayout, seen = new Map();
    for (const trace of picture._fullData) {
      if (trace.xaxis && trace.yaxis) {
        const pair = [trace.xaxis.replace("x", "xaxis"), trace.yaxis.replace("y", "yaxis")];
        seen.set(pair.join(), pair);
      }
    }
    return Array.from(seen.values()).sort(
      (a, b) =>
        full[b[1]].domain[1] - full[a[1]].domain[1] || full[a[0]].domain[0] - full[b[0]].domain[0]
    );
  }

  function stack(picture) {
    const full = picture._fullLayout, found = panels(picture), n = found.length;
    const columns = new Set(found.map(([x]) => full[x].domain[0].toFixed(2)));
    if (columns.size !== 2 || n > 6) return;
    const each = 300, margin = { t: 90, b: 90, l: 60, r: 20 };
    const height = n * each, share = 1 / n, gap = GAP / height;
    const change = { height: height + margin.t + margin.b, margin: margin, "title.font.size": 14 };
    const notes = JSON.parse(JSON.stringify(picture.layout.annotations || []));
    found.forEach(([x, y], k) => {
      const [left, right] = full[x].domain, top = full[y].domain[1];
      for (const note of notes) {
        const inside = note.xref === "paper" && note.yref === "paper" && !note.moved;
        if (inside && note.x >= left && note.x <= right && Math.abs(note.y - top) < 0.03) {
          Object.assign(note, { x: 0.5, y: 1 - k * share, moved: true });
        }
      }
      change[x + ".domain"] = [0, 1];
      change[y + ".domain"] = [1 - (k + 1) * share + gap * (k + 1 < n), 1 - k * share];
    });
    notes.forEach((note) => delete note.moved);
    if (notes.length) change.annotations = notes;
    Plotly.relayout(picture, change);
    parent.postMessage({ height: change.height + 40 }, "*");
  }

  const dark = matchMedia("(prefers-color-scheme: dark)");
  addEventListener("message", (event) => {
    if (event.data && event.data.theme in LOOKS) dress(event.data.theme);
  });
  dress(dark.matches ? "dark" : "light");
  if (innerWidth < NARROW) pictures().forEach(stack);
  parent.postMessage({ ready: true }, "*");
})();
