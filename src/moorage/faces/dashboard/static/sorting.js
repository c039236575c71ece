// Sorts the rows of a table by a click on a title. A table that is shown page by page sorts its page.

const chosen = new Map(); // by the table's name: the column and 1 or -1

const nameOf = (table) => table.closest(".table")?.getAttribute("aria-label") ?? table.caption?.textContent;

// Times sort by the time, numbers by their value; "12,345" and "40 %" are numbers, "1,180 more" is text.
const valueOf = (cell) => {
  const at = cell?.querySelector("time")?.dateTime, text = cell?.textContent.trim() ?? "";
  if (at) return Date.parse(at);
  const number = text.replace(/,(?=\d{3})/g, "").match(/^-?\d+(\.\d+)?( %)?$/);
  return number ? parseFloat(number[0]) : text;
};

const compare = (one, other) => {
  if (one === other) return 0;
  if (one === "" || other === "") return one === "" ? 1 : -1; // what is empty comes last
  if (typeof one === "number" && typeof other === "number") return one - other;
  return String(one).localeCompare(String(other), undefined, { numeric: true, sensitivity: "base" });
};

const sort = (table) => {
  const { column, way } = chosen.get(nameOf(table)), body = table.tBodies[0];
  const rows = [...body.rows].map((row, place) => ({ row, place, value: valueOf(row.cells[column]) }));
  rows.sort((a, b) =>
    (a.value === "" || b.value === "" ? compare(a.value, b.value) : way * compare(a.value, b.value)) || a.place - b.place);
  if (rows.some(({ row }, place) => row !== body.rows[place])) body.append(...rows.map(({ row }) => row));
  [...table.tHead.rows[0].cells].forEach((title, at) =>
    at === column ? title.setAttribute("aria-sort", way > 0 ? "ascending" : "descending") : title.removeAttribute("aria-sort"));
};

const sortable = (table) =>
  table.tHead?.rows.length === 1 && table.tBodies.length === 1 && table.tBodies[0].rows.length > 1 &&
  !table.querySelector("[rowspan], [colspan]") && !table.hasAttribute("data-ordered");

const prepare = () => {
  for (const table of document.querySelectorAll("main table")) {
    if (!sortable(table)) continue;
    for (const title of table.tHead.rows[0].cells) {
      if (title.querySelector("button") || !title.textContent.trim()) continue;
      const button = Object.assign(document.createElement("button"), { type: "button", className: "sort" });
      button.append(...title.childNodes);
      title.append(button);
    }
    if (chosen.has(nameOf(table))) sort(table);
  }
};

document.addEventListener("click", ({ target }) => {
  const button = target.closest?.("button.sort");
  if (!button) return;
  const title = button.closest("th"), table = title.closest("table"), before = chosen.get(nameOf(table));
  const column = title.cellIndex;
  chosen.set(nameOf(table), { column, way: before?.column === column ? -before.way : 1 });
  sort(table);
});

document.addEventListener("moorage:changed", prepare);
prepare();
