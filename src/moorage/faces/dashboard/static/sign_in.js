// Follows a one-time link: takes its code out of the address and the history, and posts it.

const code = new URLSearchParams(location.hash.slice(1)).get("link");
if (code) {
  history.replaceState(null, "", location.pathname + location.search);
  const form = document.createElement("form");
  form.method = "post";
  form.action = location.pathname;
  const field = document.createElement("input");
  field.type = "hidden";
  field.name = "link";
  field.value = code;
  form.append(field);
  document.body.append(form);
  form.submit();
}
