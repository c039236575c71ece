// Follows a one-time link: takes its code out of the address and the history, and posts it.

const code = new URLSearchParams(location.hash.slice(1)).get("link");
if (code) {
  history.replaceState(null, "", location.pathname + location.search);
  const form = document.getElementById("by-link");
  form.elements.link.value = code;
  form.submit();
}
