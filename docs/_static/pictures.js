// On a page of the site: tell the pictures in it which look is chosen, and give them the height they ask for.
(function () {
  const frames = () => Array.from(document.querySelectorAll("iframe.picture"));
  const theme = () => (document.documentElement.dataset.theme === "dark" ? "dark" : "light");
  const tell = () => frames().forEach((frame) => frame.contentWindow.postMessage({ theme: theme() }, "*"));
  addEventListener("message", (event) => {
    const frame = frames().find((frame) => frame.contentWindow === event.source);
    if (!frame || !event.data) return;
    if (event.data.height) frame.style.height = event.data.height + "px";
    if (event.data.ready) frame.contentWindow.postMessage({ theme: theme() }, "*");
  });
  new MutationObserver(tell).observe(document.documentElement, { attributeFilter: ["data-theme"] });
})();
