// Keeps ages current, and shows the reader's own time on hover. The texts are those of ages.py.

const two = (whole, size, unit, smallSize, smallUnit) => {
  const small = Math.floor((whole % size) / smallSize);
  const rest = small ? String(small).padStart(2, "0") + smallUnit : "";
  return Math.floor(whole / size) + unit + rest;
};

export const ageText = (seconds) => {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 60) return whole + "s";
  if (whole < 3600) return two(whole, 60, "m", 1, "s");
  return whole < 86400 ? two(whole, 3600, "h", 60, "m") : two(whole, 86400, "d", 3600, "h");
};

// The server's clock minus this one's, in milliseconds: ages follow the server's clock.
let ahead = 0;
export const setClock = (iso) => (ahead = Date.parse(iso) - Date.now());

const local = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });

// Whether ages are shown as times: the reader's choice, which lasts for the tab.
const KEY = "moorage-times";
let absolute = false;
try { absolute = sessionStorage.getItem(KEY) === "yes"; } catch { /* storage may be forbidden */ }

export const refresh = () => {
  const now = Date.now() + ahead;
  for (const time of document.querySelectorAll("time[datetime]")) {
    const at = Date.parse(time.dateTime), title = local.format(at);
    const sign = time.className === "until" ? -1 : 1;
    const text = absolute || time.className === "at" ? title : ageText((sign * (now - at)) / 1000);
    if (time.textContent !== text) time.textContent = text;
    if (time.title !== title) time.title = title;
  }
};

const button = document.getElementById("times");
const show = () => {
  button.textContent = absolute ? "Show ages" : "Show times";
  button.setAttribute("aria-pressed", absolute);
  refresh();
};
button?.addEventListener("click", () => {
  absolute = !absolute;
  try { sessionStorage.setItem(KEY, absolute ? "yes" : "no"); } catch { /* until the next page */ }
  show();
});
if (button) show();
