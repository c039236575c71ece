// Draws the map of the fleet: a pixel per machine on a small bitmap, scaled to the canvas.

const map = document.getElementById("map");
const form = map?.querySelector("form");
const canvas = document.getElementById("canvas");
const status = document.getElementById("machine");
const paper = canvas?.getContext("2d", { alpha: false });
const bitmap = document.createElement("canvas");
const ink = bitmap.getContext("2d");

const FULL = 200, NONE = 255; // as in fleet_map.py
const TITLE = 2, GAP = 1, SHAPES = [1, 1.8, 3, 5]; // cells above and between groups; width by height
const CELL_MAX = 96, NAMED = 44; // pixels of a cell: at most, and with its name
const REST = 2000; // milliseconds between two readings
const CONDITIONS = ["none", "fine", "silent", "silent", "failing", "drained", "preparing", "gone"];
const WORDS = ["no agent", "fine", "late", "lost", "failing", "drained", "preparing", "gone"];

let data, names, blocks = [], across = 1, down = 1, place, grid, found; // found: who matches the search
let scale = 1, left = 0, top_ = 0, dense = 1, chosen = -1, hovered = -1, colours = {};
let asked = "", waits, last = 0, drawing = false;

const field = (name) => form.elements.namedItem(name).value;
const bytes = (text) => Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
const percent = (share) => (share === NONE ? "none" : share / 2 + " %");

// Data

const load = async () => {
  waits = undefined;
  last = performance.now();
  const query = new URLSearchParams({ group: field("group"), class: field("class") });
  const key = query.toString();
  if (data && key === asked) query.set("have", data.as_of);
  try {
    const got = await read(map.dataset.columns, query);
    if (key !== new URLSearchParams({ group: field("group"), class: field("class") }).toString()) return;
    if (got.groups) await take(got, key);
    document.getElementById("map-revision").textContent = got.as_of;
  } catch (error) {
    status.textContent = "The map cannot be read: " + error.message;
  }
};

const read = async (address, query) => {
  const answer = await fetch(address + "?" + query, { redirect: "error" });
  if (!answer.ok) throw new Error("the server answered " + answer.status + ".");
  return answer.json();
};

const take = async (got, key) => {
  const moved = got.order !== data?.order || key !== asked;
  if (got.order !== names?.order) names = await read(map.dataset.names, new URLSearchParams(key));
  for (const name of ["used", "offered", "reserved", "condition"]) got[name] = bytes(got[name]);
  data = got;
  asked = key;
  // A machine came or went in between: soon both are of the same order again.
  if (names.order !== data.order) changed();
  if (moved) arrange();
  search();
  describe();
};

const changed = () => {
  if (!waits && !document.hidden) waits = setTimeout(load, Math.max(0, last + REST - performance.now()));
};

// Arrangement: groups side by side on shelves, in the shape in which machines become largest.

const arrange = () => {
  let best = 0, kept;
  for (const wider of SHAPES) {
    shape(wider);
    let limit = Math.max(...blocks.map((one) => one.wide));
    do {
      shelve(limit);
      if (least() > best) [best, kept] = [least(), [wider, limit]];
      limit = Math.ceil(limit * 1.05);
    } while (canvas.width / across > canvas.height / down);
  }
  shape(kept[0]);
  shelve(kept[1]);
  place = new Uint32Array(data.used.length);
  grid = new Int32Array(across * down).fill(-1);
  for (const one of blocks)
    for (let i = 0; i < one.count; i++) {
      const cell = (one.y + Math.floor(i / one.wide)) * across + one.x + (i % one.wide);
      grid[(place[one.first + i] = cell)] = one.first + i;
    }
  bitmap.width = across;
  bitmap.height = down;
  chosen = hovered = -1;
  fit();
};

const shape = (wider) => {
  let first = 0;
  blocks = data.groups.map(([name, count, , capacity, used]) => {
    const wide = Math.ceil(Math.sqrt(count * wider));
    first += count;
    return { name, count, capacity, used, wide, high: Math.ceil(count / wide), first: first - count };
  });
};

const shelve = (limit) => {
  let x = 0, y = 0, tall = 0;
  across = 1;
  for (const one of blocks) {
    if (x && x + one.wide > limit) [x, y, tall] = [0, y + tall + GAP, 0];
    [one.x, one.y] = [x, y + TITLE];
    across = Math.max(across, x + one.wide);
    x += one.wide + GAP;
    tall = Math.max(tall, one.high + TITLE);
  }
  down = Math.max(1, y + tall);
};

// Colours: those of the style sheet, so that both themes have their own.

const rgb = (name) => {
  const text = getComputedStyle(map).getPropertyValue("--map-" + name).trim();
  return [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
};
const packed = ([red, green, blue]) => ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
const mixed = (one, other, part) => one.map((value, i) => Math.round(value + (other[i] - value) * part));

const paint = () => {
  if (!data) return;
  const kind = field("colour"), ground = rgb("ground"), text = rgb("text");
  colours = { ground: "rgb(" + ground + ")", text: "rgb(" + text + ")", mark: "rgb(" + rgb("mark") + ")" };
  map.dataset.colour = kind;
  const low = rgb("low"), high = rgb("high"), table = [];
  for (let share = 0; share < FULL; share++) table[share] = mixed(low, high, share / FULL);
  [table[FULL], table[NONE]] = [kind === "used" ? rgb("full") : high, rgb("none")];
  const wanted = kind === "condition" ? CONDITIONS.map(rgb) : table;
  const bright = Uint32Array.from(wanted, (one) => packed(one ?? ground));
  const faint = Uint32Array.from(wanted, (one) => packed(mixed(one ?? ground, ground, 0.85)));
  const image = ink.createImageData(across, down), column = data[kind];
  const pixels = new Uint32Array(image.data.buffer).fill(packed(ground));
  for (let i = 0; i < column.length; i++) pixels[place[i]] = (!found || found[i] ? bright : faint)[column[i]];
  ink.putImageData(image, 0, 0);
  draw();
};

// Drawing

const draw = () => {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(frame);
};

const frame = () => {
  drawing = false;
  const { width, height } = canvas, line = scale > 14 * dense ? 2 : 1;
  paper.fillStyle = colours.ground;
  paper.fillRect(0, 0, width, height);
  if (!data) return;
  const x0 = Math.max(0, Math.floor(-left / scale)), y0 = Math.max(0, Math.floor(-top_ / scale));
  const x1 = Math.min(across, Math.ceil((width - left) / scale)), y1 = Math.min(down, Math.ceil((height - top_) / scale));
  paper.imageSmoothingEnabled = false;
  paper.drawImage(bitmap, x0, y0, x1 - x0, y1 - y0, left + x0 * scale, top_ + y0 * scale, (x1 - x0) * scale, (y1 - y0) * scale);
  if (scale >= 4) {
    for (let x = x0; x <= x1; x++) paper.fillRect(Math.round(left + x * scale) - line, 0, line, height);
    for (let y = y0; y <= y1; y++) paper.fillRect(0, Math.round(top_ + y * scale) - line, width, line);
  }
  paper.textBaseline = "bottom";
  if (scale * TITLE >= 8 * dense) for (const one of blocks) title(one, width, height);
  if (scale >= NAMED * dense) label(x0, y0, x1, y1);
  ring(hovered, 1);
  ring(chosen, 2);
};

const write = (texts, x, y, wide) => {
  const room = Math.floor(wide / (6 * dense)), text = texts.find((one) => one.length <= room) ?? texts[0].slice(0, room);
  if (room > 1) paper.fillText(text, x, y);
};

const title = (one, width, height) => {
  const x = left + one.x * scale, y = top_ + one.y * scale, wide = one.wide * scale;
  if (x > width || x + wide < 0 || y < 0 || y > height + 20) return;
  paper.font = Math.min(11 * dense, TITLE * scale) + "px system-ui, sans-serif";
  paper.fillStyle = colours.text;
  const text = one.name + " · " + one.count, sum = Math.round((one.used * 100) / one.capacity);
  write(one.capacity ? [text + ", " + sum + " % used", text, one.name] : [text, one.name], x, y - dense, wide);
};

const label = (x0, y0, x1, y1) => {
  paper.font = 10 * dense + "px ui-monospace, monospace";
  for (let y = y0; y < y1; y++)
    for (let x = x0; x < x1; x++) {
      const machine = grid[y * across + x];
      if (machine < 0) continue;
      const at = left + x * scale, under = top_ + (y + 1) * scale - 3 * dense;
      paper.fillStyle = colours.ground;
      paper.fillRect(at, under - 12 * dense, scale - 2, 13 * dense);
      paper.fillStyle = colours.text;
      write([names.names[machine] ?? ""], at + 2, under, scale - 4);
    }
};

const ring = (machine, wide) => {
  if (machine < 0) return;
  const cell = place[machine], size = Math.max(scale, 5 * dense);
  paper.lineWidth = wide * dense;
  paper.strokeStyle = colours.mark;
  paper.strokeRect(left + (cell % across) * scale - 1, top_ + Math.floor(cell / across) * scale - 1, size + 1, size + 1);
};

// Moving

const least = () => Math.min(canvas.width / across, canvas.height / down);

const hold = () => {
  const clamp = (at, size, room) => (size < room ? (room - size) / 2 : Math.min(0, Math.max(room - size, at)));
  left = clamp(left, across * scale, canvas.width);
  top_ = clamp(top_, down * scale, canvas.height);
  // On a phone, a finger scrolls the page until the map is zoomed in.
  canvas.toggleAttribute("data-zoomed", scale > least());
};

const fit = () => {
  scale = least();
  hold();
  left = 0;
};

const zoom = (factor, x = canvas.width / 2, y = canvas.height / 2) => {
  const next = Math.min(CELL_MAX * dense, Math.max(least(), scale * factor));
  left = x - ((x - left) * next) / scale;
  top_ = y - ((y - top_) * next) / scale;
  scale = next;
  hold();
  draw();
};

const pan = (x, y) => {
  left += x;
  top_ += y;
  hold();
  draw();
};

const choose = (machine, centre) => {
  if (machine < 0 || machine >= place.length) return;
  chosen = machine;
  const x = ((place[machine] % across) + 0.5) * scale + left, y = (Math.floor(place[machine] / across) + 0.5) * scale + top_;
  const { width, height } = canvas;
  if (centre || x < 0 || y < 0 || x > width || y > height) pan(width / 2 - x, height / 2 - y);
  describe();
  draw();
};

const describe = () => {
  const i = hovered < 0 ? chosen : hovered;
  if (i < 0) {
    const count = found ? found.reduce((sum, one) => sum + one, 0) + " of " : "";
    const more = data.left_out ? ", " + data.left_out + " more are not on the map" : "";
    status.textContent = count + data.used.length + " machines in " + blocks.length + " groups" + more + ".";
    return;
  }
  const group = blocks.findLast((one) => one.first <= i);
  status.textContent = [names.names[i], group.name, percent(data.used[i]) + " used", percent(data.offered[i]) + " offered",
    percent(data.reserved[i]) + " reserved", WORDS[data.condition[i]]].join(" · ");
};

const openMachine = () => {
  if (chosen < 0) return;
  const id = names.ids.slice(chosen * 32, chosen * 32 + 32);
  location.href = map.dataset.machine + id.replace(/^(.{8})(....)(....)(....)/, "$1-$2-$3-$4-");
};

const under = (event) => {
  const x = Math.floor((event.offsetX * dense - left) / scale), y = Math.floor((event.offsetY * dense - top_) / scale);
  return x < 0 || y < 0 || x >= across || y >= down || !grid ? -1 : grid[y * across + x];
};

const search = () => {
  const text = field("find").trim().toLowerCase(), id = text.replaceAll("-", "");
  found = undefined;
  if (text) {
    const isId = /^[0-9a-f]{8,32}$/.test(id);
    found = names.names.map((name, i) => name.toLowerCase().includes(text) || (isId && names.ids.startsWith(id, i * 32)));
  }
  paint();
};

// Above and below: the nearest machine of that column, across the gaps between groups.
const beside = (step) => {
  if (chosen < 0) return 0;
  for (let at = place[chosen] + step * across; at >= 0 && at < grid.length; at += step * across) if (grid[at] >= 0) return grid[at];
  return chosen;
};

const KEYS = {
  ArrowLeft: (shift) => (shift ? pan(scale * 8, 0) : choose(Math.max(0, chosen - 1))),
  ArrowRight: (shift) => (shift ? pan(-scale * 8, 0) : choose(Math.min(place.length - 1, chosen + 1))),
  ArrowUp: (shift) => (shift ? pan(0, scale * 8) : choose(beside(-1))),
  ArrowDown: (shift) => (shift ? pan(0, -scale * 8) : choose(beside(1))),
  Home: () => choose(0),
  End: () => choose(place.length - 1),
  Enter: openMachine,
  "+": () => zoom(1.5),
  "=": () => zoom(1.5),
  "-": () => zoom(1 / 1.5),
  0: () => (fit(), draw()),
};

const resize = () => {
  dense = window.devicePixelRatio || 1;
  canvas.width = Math.max(1, Math.round(canvas.clientWidth * dense));
  canvas.height = Math.max(1, Math.round(canvas.clientHeight * dense));
  if (!data) return;
  const kept = chosen;
  arrange();
  choose(kept);
  paint();
};

const fingers = new Map();
let travelled = 0;

const dragged = (event) => {
  const before = fingers.get(event.pointerId);
  if (!before) {
    if (event.pointerType === "touch") return;
    const now = under(event);
    if (now === hovered) return;
    hovered = now;
    describe();
    draw();
    return;
  }
  const now = { x: event.offsetX * dense, y: event.offsetY * dense };
  const [other] = [...fingers].filter(([id]) => id !== event.pointerId).map(([, at]) => at);
  travelled += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
  if (other) {
    const far = (at) => Math.max(1, Math.hypot(at.x - other.x, at.y - other.y));
    zoom(far(now) / far(before), (now.x + other.x) / 2, (now.y + other.y) / 2);
  } else pan(now.x - before.x, now.y - before.y);
  fingers.set(event.pointerId, now);
};

const listen = () => {
  canvas.addEventListener("wheel", (event) => {
    const factor = Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015));
    if (factor < 1 && scale <= least()) return; // then the page scrolls
    event.preventDefault();
    zoom(factor, event.offsetX * dense, event.offsetY * dense);
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const act = KEYS[event.key];
    if (!act || !data || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    hovered = -1;
    act(event.shiftKey);
  });
  canvas.addEventListener("pointerdown", (event) => {
    if (!fingers.size) travelled = 0;
    fingers.set(event.pointerId, { x: event.offsetX * dense, y: event.offsetY * dense });
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", dragged);
  for (const name of ["pointerup", "pointercancel"])
    canvas.addEventListener(name, (event) => {
      fingers.delete(event.pointerId);
      if (name === "pointerup" && travelled < 6 * dense) choose(under(event));
    });
  canvas.addEventListener("pointerleave", () => {
    hovered = -1;
    if (data) describe();
    draw();
  });
  canvas.addEventListener("dblclick", openMachine);
  for (const button of map.querySelectorAll("[data-zoom]"))
    button.addEventListener("click", () => (button.dataset.zoom === "0" ? KEYS[0]() : zoom(1.6 ** button.dataset.zoom)));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const address = new URL(location.href);
    for (const [name, value] of new FormData(form)) value ? address.searchParams.set(name, value) : address.searchParams.delete(name);
    history.replaceState(null, "", address);
    if (!data) return;
    search();
    if (found && event.submitter !== undefined) choose(found.indexOf(true), true);
    load();
  });
  form.elements.namedItem("find").addEventListener("input", () => {
    if (!data) return;
    chosen = -1;
    search();
    describe();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
  document.addEventListener("moorage:changed", changed);
  document.addEventListener("visibilitychange", changed);
  new ResizeObserver(resize).observe(canvas);
};

if (map) {
  map.hidden = false;
  listen();
  resize();
  load();
}
