// What every page has for the hands: shortcuts of the keyboard, and buttons that copy an id.

const keys = document.getElementById("keys");
const typing = (node) => node.matches?.("input, textarea, select, [contenteditable]");

// On a phone the sections scroll: the current one is shown, also after the phone is turned.
const sections = document.querySelector("header nav");
const current = sections?.querySelector("[aria-current]");
if (current) new ResizeObserver(() => {
  sections.scrollLeft = current.offsetLeft - (sections.clientWidth - current.offsetWidth) / 2;
}).observe(sections);

let going = 0; // until when a second letter names a section

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || typing(event.target)) return;
  const find = document.querySelector(".find input");
  if (going > Date.now()) {
    going = 0;
    const link = document.querySelector(`header nav [data-key="${CSS.escape(event.key)}"]`);
    if (link) return void link.click();
  }
  if (event.key === "/" && find) {
    event.preventDefault();
    find.focus();
    find.select();
  } else if (event.key === "?" && keys && !keys.open) {
    event.preventDefault();
    keys.showModal();
  } else if (event.key === "g") going = Date.now() + 1500;
});

// Without HTTPS, browsers lend the clipboard only to their own machine; the old way works everywhere.
const copy = async (button) => {
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
  } catch {
    const field = Object.assign(document.createElement("textarea"), { value: button.dataset.copy });
    document.body.append(field);
    field.select();
    const copied = document.execCommand("copy");
    field.remove();
    if (!copied) return;
  }
  button.dataset.text ??= button.textContent;
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = button.dataset.text), 1500);
};

document.addEventListener("click", ({ target }) => {
  if (target.matches?.("button[data-copy]")) copy(target);
  if (target.id === "show-keys") keys?.showModal();
});
