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
