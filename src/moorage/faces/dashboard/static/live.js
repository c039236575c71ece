// Keeps an open page current: the server sends `main` when it has changed, and it is morphed in place.

import { ageText, refresh, setClock } from "./ages.js";

// The only place that turns text into HTML: fragments of this page, from this origin.
const policy = window.trustedTypes?.createPolicy("moorage", { createHTML: (text) => text });

const parsed = (text) =>
  new DOMParser().parseFromString(policy ? policy.createHTML(text) : text, "text/html").body;

const main = document.getElementById("main");
const connection = document.getElementById("connection");
const TRYING = "Not connected. Trying again …";
const say = (text) => connection.textContent === text || (connection.textContent = text);

// Whether the reader has changed a field since the server sent it.
const edited = (node) =>
  node.matches("input, textarea") && (node.value !== node.defaultValue || node.checked !== node.defaultChecked);
const inUse = (node) => node === document.activeElement && node.matches("input, select, textarea");

const callbacks = {
  // What the reader is typing, has typed, opened or selected stays. Buttons and links do not: a
  // button that stayed would belong to another form.
  beforeNodeMorphed: (old) =>
    !(old.nodeType === 1 && (old.hasAttribute("data-keep") || inUse(old) || edited(old))),
  beforeAttributeUpdated: (name, node) => !(name === "open" && node.localName === "details"),
};

const RETRY = 5000, SILENT = 45_000; // milliseconds; the server sends something every 30 s
// A connection that is back within this time has hidden nothing: proxies end what lasts for long.
const GRACE = 4000;
let source, again;
let heard; // when the stream was opened or has said something
let lost; // since when there is no stream; undefined: there is one
let fresh = Date.now(); // when the server last said that what is shown is current
let failure = ""; // why the server cannot show the page

const morph = (text) => {
  Idiomorph.morph(main, parsed(text).childNodes, { morphStyle: "innerHTML", ignoreActiveValue: true, callbacks });
  refresh();
  document.dispatchEvent(new Event("moorage:changed"));
};

const stale = document.getElementById("stale");
const title = document.title;

// Says over everything else that what is shown may be wrong, and how old it is.
const warn = (why) => {
  if (!stale) return;
  const [text, age] = stale.children;
  const said = why && `${why} What you see is from ${new Date(fresh).toLocaleTimeString()} and may be wrong.`;
  // Only what has changed is read aloud, and so the age is not.
  if (text.textContent !== said) {
    text.textContent = said;
    document.title = why ? `Old: ${title}` : title;
  }
  age.textContent = why && ` It is ${ageText((Date.now() - fresh) / 1000)} old.`;
  stale.hidden = !why;
};

const close = () => {
  clearTimeout(again);
  source?.close();
  source = undefined;
  lost ??= Date.now();
  say(TRYING);
};

const back = () => {
  fresh = Date.now();
  failure = "";
  say("Live.");
};

const EVENTS = {
  main: (text) => {
    morph(text);
    back();
  },
  beat: (age) => (age ? say(`The server is busy: this is from ${age} ago.`) : back()),
  failed: (text) => (failure = text),
  "signed-out": () => {
    close();
    location.reload();
  },
};

const open = () => {
  if (source || document.hidden) return;
  heard = Date.now();
  source = new EventSource(location.href);
  for (const name in EVENTS)
    source.addEventListener(name, (event) => {
      if (event.origin !== location.origin) return;
      heard = Date.now();
      lost = undefined;
      setClock(event.lastEventId);
      EVENTS[name](event.data);
      look();
    });
  source.onerror = () => {
    lost ??= Date.now();
    // The browser gives up if the answer is no stream, such as a proxy's 502.
    if (source?.readyState !== EventSource.CLOSED) return;
    close();
    again = setTimeout(open, RETRY);
  };
};

// A connection can be dead although nobody has closed it: then another one is tried.
const look = () => {
  const now = Date.now();
  if (source && now - heard >= SILENT) {
    close();
    open();
  }
  if (document.hidden) return;
  const gone = lost && now - lost >= GRACE;
  if (gone) say(TRYING);
  if (failure) warn(`The server cannot show this page: ${failure}`);
  else warn(gone ? "The server does not answer." : "");
};

if (document.body.hasAttribute("data-live")) {
  setClock(main.dataset.now);
  // Browsers open few connections to one server: hidden pages must not use them up.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return close();
    lost = Date.now(); // what was hidden is old, but a moment is enough to bring it up to date
    open();
  });
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", open);
  setInterval(look, 1000);
  open();
}

// A second click within this time is a double click, not a second wish.
const TWICE = 2000; // milliseconds
const sent = new WeakMap();

document.addEventListener("submit", (event) => {
  const form = event.target, question = form.dataset.confirm;
  if (Date.now() - sent.get(form) < TWICE || (question && !window.confirm(question))) event.preventDefault();
  else if (form.method === "post") {
    sent.set(form, Date.now());
    if (question) form.append(Object.assign(document.createElement("input"), { type: "hidden", name: "sure", value: "yes" }));
  }
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

// What was done is said once: not again when the page is reloaded, or its address passed on.
const here = new URL(location.href);
if (here.searchParams.has("notice")) {
  here.searchParams.delete("notice");
  history.replaceState(null, "", here);
}

refresh();
setInterval(refresh, 1000);
