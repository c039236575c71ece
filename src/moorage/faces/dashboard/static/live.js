// Keeps an open page current: the server sends `main` when it has changed, and it is morphed in place.

import { refresh, setClock } from "./ages.js";

// The only place that turns text into HTML: fragments of this page, from this origin.
const policy = window.trustedTypes?.createPolicy("moorage", { createHTML: (text) => text });

const parsed = (text) =>
  new DOMParser().parseFromString(policy ? policy.createHTML(text) : text, "text/html").body;

const main = document.getElementById("main");
const connection = document.getElementById("connection");
const say = (text) => (connection.textContent = text);

const callbacks = {
  // What the reader is typing, has opened, or has selected stays.
  beforeNodeMorphed: (old) => !(old.nodeType === 1 && (old.hasAttribute("data-keep") || old === document.activeElement)),
  beforeAttributeUpdated: (name, node) => !(name === "open" && node.localName === "details"),
};

let source;

const morph = (text) => {
  Idiomorph.morph(main, parsed(text), { morphStyle: "innerHTML", ignoreActiveValue: true, callbacks });
  refresh();
  document.dispatchEvent(new Event("moorage:changed"));
};

const close = () => {
  source?.close();
  source = undefined;
};

const open = () => {
  if (source || document.hidden) return;
  source = new EventSource(location.href);
  source.addEventListener("main", (event) => {
    if (event.origin !== location.origin) return;
    setClock(event.lastEventId);
    morph(event.data);
    say("Live.");
  });
  source.addEventListener("signed-out", () => {
    close();
    location.reload();
  });
  source.onerror = () => say("Not connected: what you see may be old. Trying again …");
};

if (document.body.hasAttribute("data-live")) {
  setClock(main.dataset.now);
  // Browsers open few connections to one server: hidden pages must not use them up.
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  window.addEventListener("pagehide", close);
  open();
}

document.addEventListener("submit", (event) => {
  const question = event.target.dataset.confirm;
  if (question && !window.confirm(question)) event.preventDefault();
});

// Fields that filter a page submit their form as soon as they change. That loads the page again, and
// the focus is lost: who uses the keyboard presses Enter, or the form's button if it has one.
let keyboard = false;
document.addEventListener("keydown", () => (keyboard = true), true);
document.addEventListener("pointerdown", () => (keyboard = false), true);
document.addEventListener("change", ({ target: { form } }) => {
  const waits = keyboard && form?.querySelector("button:not([type=button])");
  if (form?.hasAttribute("data-auto") && !waits) form.requestSubmit();
});

// A slider says what it stands at.
document.addEventListener("input", ({ target }) => {
  const output = target.labels?.[0]?.querySelector("output");
  if (output) output.textContent = target.value;
});

refresh();
setInterval(refresh, 1000);
