// Says what a plot shows below the pointer, or at the place that the arrow keys have chosen.

const clock = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit" });
const LEFT = 44, RIGHT = 8; // as plots.py leaves them free

const say = (plot, at) => {
  const points = plot.dataset.points.split(" "), number = Math.min(points.length - 1, Math.max(0, at));
  const [used, waiting] = points[number].split(","), { x, width } = plot.viewBox.baseVal;
  const start = Date.parse(plot.dataset.start) + number * plot.dataset.step * 1000;
  const place = x + LEFT + ((number + 0.5) * (width - LEFT - RIGHT)) / points.length;
  plot.querySelector(".cursor").setAttribute("d", `M${place},10V158`);
  plot.closest("figure").querySelector("output").textContent = `${clock.format(start)}: ${used} in use, ${waiting} waiting`;
  plot.dataset.at = number;
};

const placeOf = (plot, event) => {
  const box = plot.getBoundingClientRect(), { width } = plot.viewBox.baseVal;
  const inside = ((event.clientX - box.left) / box.width) * width - LEFT;
  return Math.floor((inside / (width - LEFT - RIGHT)) * plot.dataset.points.split(" ").length);
};

document.addEventListener("pointermove", (event) => {
  const plot = event.target.closest?.("svg[data-points]");
  if (plot) say(plot, placeOf(plot, event));
});
document.addEventListener("keydown", (event) => {
  const plot = event.target, step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!step || !plot.matches?.("svg[data-points]")) return;
  event.preventDefault();
  say(plot, Number(plot.dataset.at ?? plot.dataset.points.split(" ").length - 1) + step);
});
