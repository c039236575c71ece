// Applies the reader's choice of a theme before anything is painted: it is no module, so it is not deferred.
(() => {
  const root = document.documentElement, KEY = "moorage-theme", NEXT = { "": "dark", dark: "light", light: "" };
  const get = () => {
    try { return localStorage.getItem(KEY) || ""; } catch { return ""; } // storage may be forbidden
  };
  const apply = (theme) => (theme in NEXT && theme ? (root.dataset.theme = theme) : delete root.dataset.theme);
  apply(get());
  addEventListener("storage", (event) => event.key === KEY && apply(event.newValue || ""));
  document.addEventListener("click", ({ target }) => {
    if (target.id !== "theme") return;
    const theme = NEXT[root.dataset.theme || ""];
    apply(theme);
    target.textContent = "Theme: " + (theme || "as the system");
    try { localStorage.setItem(KEY, theme); } catch { /* it lasts until the next page */ }
    document.dispatchEvent(new Event("moorage:theme"));
  });
  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    if (button) button.textContent = "Theme: " + (root.dataset.theme || "as the system");
  });
})();
