// Draws the map of the fleet: a pixel per machine on a bitmap that is scaled to the canvas.

const [map, canvas, status, revision] = ["map", "canvas", "machine", "map-revision"].map((id) => document.getElementById(id));
const form = map?.querySelector("form");
const paper = canvas?.getContext("2d", { alpha: false });
const bitmap = document.createElement("canvas");
const ink = bitmap.getContext("2d");

const FULL = 200, NONE = 255; // as in fleet_map.py
const TITLE = 2, GAP = 1, SHAPES = [1, 1.8, 3, 5]; // in cells
const CELL_MAX = 64; // pixels
const REST = 2000; // milliseconds between two readings
const SHARES = ["used", "offered", "reserved"];
const CONDITIONS = ["no-agent", "fine", "late", "lost", "failing", "drained", "preparing", "gone"];

let data, names, blocks = [], across = 1, down = 1, place, grid, found;
let scale = 1, left = 0, top_ = 0, dense = 1, chosen = -1, hovered = -1, colours = {};
let asked = "", waits, last = 0, drawing = false;

const field = (name) => form.elements.namedItem(name).value;
const bytes = (text) => Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
const percent = (share, what) => (share === NONE ? "none " : share / 2 + " % ") + what;

const wanted = () => new URLSearchParams({ group: field("group"), class: field("class") }).toString();

const load = async () => {
  waits = undefined;
  last = performance.now();
  const key = wanted(), query = new URLSearchParams(key);
  if (data && key === asked) query.set("have", data.as_of);
  try {
    const got = await read(map.dataset.columns, query);
    if (key !== wanted()) return;
    if (got.groups) await take(got, key);
    revision.textContent = got.as_of;
    if (got.as_of !== document.querySelector("[data-revision]").textContent) changed();
  } catch (error) {
    status.textContent = "The map cannot be read: " + error.message;
  }
};

const read = async (address, query) => {
  const answer = await fetch(address + "?" + query, { redirect: "error" });
  if (!answer.ok) throw new Error("status " + answer.status);
  return answer.json();
};

const take = async (got, key) => {
  const moved = got.order !== data?.order || key !== asked;
  if (got.order !== names?.order) names = await read(map.dataset.names, new URLSearchParams(key));
  for (const name of [...SHARES, "condition"]) got[name] = bytes(got[name]);
  data = got;
  asked = key;
  if (names.order !== data.order) changed();
  await rest();
  if (moved) arrange();
  await rest();
  search();
  describe();
};

const rest = () => new Promise((go) => setTimeout(go)); // the browser may answer its user

const changed = () => {
  if (!waits && !document.hidden) waits = setTimeout(load, Math.max(0, last + REST - performance.now()));
};

// Groups stand on shelves, in the shape in which machines become largest.

const arrange = () => {
  let best = -1, kept, shelves;
  for (const wider of SHAPES) {
    shape(wider);
    let limit = Math.max(...blocks.map((one) => one.wide));
    do {
      shelves = shelve(limit);
      if (least() > best) [best, kept] = [least(), [wider, limit]];
      limit = Math.ceil(limit * 1.1);
    } while (shelves > 1 && canvas.width / across > canvas.height / down);
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
  let x = 0, y = 0, tall = 0, shelves = 1;
  across = 1;
  for (const one of blocks) {
    if (x && x + one.wide > limit) [x, y, tall, shelves] = [0, y + tall + GAP, 0, shelves + 1];
    [one.x, one.y] = [x, y + TITLE];
    across = Math.max(across, x + one.wide);
    x += one.wide + GAP;
    tall = Math.max(tall, one.high + TITLE);
  }
  down = Math.max(1, y + tall);
  return shelves;
};

const css = (name) => getComputedStyle(map).getPropertyValue("--map-" + name);
const rgb = (name) => [1, 3, 5].map((at) => parseInt(css(name).slice(at, at + 2), 16));

const inkOf = (share, kind, low, high) => {
  if (share === NONE) return rgb("none");
  if (share === FULL && kind === "used") return rgb("full");
  return low.map((one, i) => one + ((high[i] - one) * share) / FULL);
};

const paint = () => {
  if (!grid) return;
  const kind = field("colour"), low = rgb("low"), high = rgb("high");
  map.dataset.colour = kind;
  colours = { ground: css("ground"), text: css("text"), mark: css("mark") };
  const inks = kind === "condition" ? CONDITIONS.map(rgb) : Array.from({ length: 256 }, (_, share) => inkOf(share, kind, low, high));
  const table = Uint32Array.from(inks, ([red, green, blue]) => (blue << 16) | (green << 8) | red);
  const image = ink.createImageData(across, down), pixels = new Uint32Array(image.data.buffer);
  data[kind].forEach((one, i) => (pixels[place[i]] = table[one] | ((!found || found[i] ? 255 : 40) << 24)));
  ink.putImageData(image, 0, 0);
  draw();
};

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
  if (!grid) return;
  const x0 = Math.max(0, Math.floor(-left / scale)), y0 = Math.max(0, Math.floor(-top_ / scale));
  const x1 = Math.min(across, Math.ceil((width - left) / scale)), y1 = Math.min(down, Math.ceil((height - top_) / scale));
  paper.imageSmoothingEnabled = false;
  paper.drawImage(bitmap, x0, y0, x1 - x0, y1 - y0, left + x0 * scale, top_ + y0 * scale, (x1 - x0) * scale, (y1 - y0) * scale);
  if (scale >= 4) {
    for (let x = x0; x <= x1; x++) paper.fillRect(Math.round(left + x * scale) - line, 0, line, height);
    for (let y = y0; y <= y1; y++) paper.fillRect(0, Math.round(top_ + y * scale) - line, width, line);
  }
  paper.font = Math.min(11 * dense, TITLE * scale) + "px system-ui, sans-serif";
  paper.fillStyle = colours.text;
  if (scale * TITLE >= 8 * dense)
    for (const one of blocks) if (one.x < x1 && one.x + one.wide > x0 && one.y < y1 + TITLE && one.y >= y0) title(one);
  ring(hovered, 1);
  ring(chosen, 2);
};

const title = (one) => {
  const room = Math.floor((one.wide * scale) / (7 * dense)), text = one.name + " · " + one.count;
  const texts = one.capacity ? [text + ", " + Math.round((one.used * 100) / one.capacity) + " % used", text] : [text];
  paper.fillText(texts.find((some) => some.length <= room) ?? one.name.slice(0, room), left + one.x * scale, top_ + one.y * scale - 2 * dense);
};

const ring = (machine, wide) => {
  if (machine < 0) return;
  const [x, y] = corner(machine), size = Math.max(scale, 5 * dense) + 1;
  paper.lineWidth = wide * dense;
  paper.strokeStyle = colours.mark;
  paper.strokeRect(x - 1, y - 1, size, size);
};

const least = () => Math.min(canvas.width / across, canvas.height / down);

const hold = () => {
  const clamp = (at, size, room) => Math.max(Math.min(0, room - size), Math.min(0, at));
  left = clamp(left, across * scale, canvas.width);
  top_ = clamp(top_, down * scale, canvas.height);
  canvas.toggleAttribute("data-zoomed", scale > least());
  draw();
};

const fit = () => {
  scale = least();
  hold();
};

const middle = () => [canvas.width / 2, canvas.height / 2];
const corner = (machine) => [left + (place[machine] % across) * scale, top_ + Math.floor(place[machine] / across) * scale];

const zoom = (factor, x, y) => {
  if (x === undefined) [x, y] = chosen < 0 ? middle() : corner(chosen);
  const next = Math.min(CELL_MAX * dense, Math.max(least(), scale * factor));
  left = x - ((x - left) * next) / scale;
  top_ = y - ((y - top_) * next) / scale;
  scale = next;
  hold();
};

const pan = (x, y) => {
  left += x;
  top_ += y;
  hold();
};

const choose = (machine) => {
  if (machine < 0 || machine >= place.length) return;
  chosen = machine;
  const [x, y] = corner(machine), [halfWide, halfHigh] = middle();
  if (Math.abs(x - halfWide) > halfWide || Math.abs(y - halfHigh) > halfHigh) pan(halfWide - x, halfHigh - y);
  describe();
  draw();
};

const describe = () => {
  const i = hovered < 0 ? chosen : hovered;
  if (i < 0) {
    const count = found ? found.filter(Boolean).length + " of " : "";
    const more = data.left_out ? ", " + data.left_out + " are left out" : "";
    status.textContent = count + data.used.length + " machines in " + blocks.length + " groups" + more;
    return;
  }
  const group = blocks.findLast((one) => one.first <= i);
  status.textContent = [names.names[i], group.name, ...SHARES.map((what) => percent(data[what][i], what)), CONDITIONS[data.condition[i]].replace("-", " ")].join(" · ");
};

const openMachine = () => {
  if (chosen < 0) return;
  const id = names.ids.slice(chosen * 32, chosen * 32 + 32);
  location.href = map.dataset.machine + id.replace(/^(.{8})(....)(....)(....)/, "$1-$2-$3-$4-");
};

const spot = (event) => [event.offsetX * dense, event.offsetY * dense];

const under = (event) => {
  const [x, y] = spot(event), column = Math.floor((x - left) / scale), row = Math.floor((y - top_) / scale);
  return column < 0 || column >= across ? -1 : grid?.[row * across + column] ?? -1;
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

const beside = (step) => {
  for (let at = place[chosen] + step; at >= 0 && at < grid.length; at += step) if (grid[at] >= 0) return grid[at];
  return chosen;
};

const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const KEYS = {
  Home: () => choose(0),
  End: () => choose(place.length - 1),
  Enter: openMachine,
  "+": () => zoom(1.6),
  "-": () => zoom(1 / 1.6),
  0: fit,
};

const pressed = (event) => {
  const step = STEPS[event.key], act = KEYS[event.key];
  if (!grid || !(step || act) || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  hovered = -1;
  if (act) act();
  else if (event.shiftKey) pan(-8 * scale * step[0], -8 * scale * step[1]);
  else choose(chosen < 0 ? 0 : step[0] ? chosen + step[0] : beside(step[1] * across));
};

const resize = () => {
  dense = devicePixelRatio;
  [canvas.width, canvas.height] = [canvas.clientWidth * dense, canvas.clientHeight * dense];
  if (!data) return;
  const kept = chosen;
  arrange();
  choose(kept);
  paint();
};

const hover = (machine) => {
  if (machine === hovered || !grid) return;
  hovered = machine;
  describe();
  draw();
};

const fingers = new Map();
let travelled = 0;

const dragged = (event) => {
  const before = fingers.get(event.pointerId);
  if (!before) {
    if (event.pointerType === "touch") return;
    hover(under(event));
    return;
  }
  const [x, y] = spot(event), [fromX, fromY] = before;
  const [other] = [...fingers.values()].filter((one) => one !== before);
  travelled += Math.abs(x - fromX) + Math.abs(y - fromY);
  if (other) {
    const far = (atX, atY) => Math.max(1, Math.hypot(atX - other[0], atY - other[1]));
    zoom(far(x, y) / far(fromX, fromY), (x + other[0]) / 2, (y + other[1]) / 2);
  } else pan(x - fromX, y - fromY);
  fingers.set(event.pointerId, [x, y]);
};

const ON = {
  wheel: (event) => {
    const factor = Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015));
    if (factor < 1 && scale <= least()) return;
    event.preventDefault();
    zoom(factor, ...spot(event));
  },
  keydown: pressed,
  pointerdown: (event) => {
    if (!fingers.size) travelled = 0;
    fingers.set(event.pointerId, spot(event));
    canvas.setPointerCapture(event.pointerId);
  },
  pointermove: dragged,
  pointerup: (event) => {
    fingers.delete(event.pointerId);
    if (travelled < 6 * dense) choose(under(event));
  },
  pointercancel: (event) => fingers.delete(event.pointerId),
  pointerleave: () => hover(-1),
  dblclick: openMachine,
};

const listen = () => {
  for (const name in ON) canvas.addEventListener(name, ON[name]);
  for (const button of map.querySelectorAll("[data-zoom]"))
    button.addEventListener("click", KEYS[button.dataset.zoom]);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const address = new URL(location.href);
    for (const [name, value] of new FormData(form)) address.searchParams.set(name, value);
    history.replaceState(null, "", address);
    if (!grid) return;
    search();
    if (found) choose(found.indexOf(true));
    load();
  });
  form.elements.namedItem("find").addEventListener("input", () => {
    if (!grid) return;
    chosen = -1;
    search();
    describe();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
  document.addEventListener("moorage:theme", paint);
  document.addEventListener("moorage:changed", changed);
  document.addEventListener("visibilitychange", changed);
  new ResizeObserver(resize).observe(canvas);
};

if (map) {
  map.hidden = false;
  listen();
  load();
}
