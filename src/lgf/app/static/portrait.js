// The phase portrait: trajectory, samples, vector field and equilibria in planes of two variables, as SVG.

import { figure, h } from "./dom.js";

const SPACE = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT, LEFT, BELOW] = [360, 260, 54, 36];
const ARROW = 7; // half of its length
const RESTS = { true: "stable", false: "unstable", null: "undecided" };

function s(tag, attributes, ...children) {
  const element = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// The planes that the server chose; none for one equation of first order.
export function phasePortrait(observation, curve) {
  return curve.planes.map((shown) => plane(shown, observation, curve));
}

function plane({ x, y, limits, arrows, rests }, observation, curve) {
  const line = points(curve.columns[x], curve.columns[y]);
  const dots = points(observation.columns[x], observation.columns[y]);
  if (!line.length) return null;
  const across = scale(limits[0], [LEFT, WIDTH - 10]);
  const up = scale(limits[1], [HEIGHT - BELOW, 10]);
  const inside = rests.filter((rest) => within(rest.x, limits[0]) && within(rest.y, limits[1]));
  const at = ([a, b]) => `${across.place(a).toFixed(1)},${up.place(b).toFixed(1)}`;
  const title = `${y} against ${x}`;
  const svg = s(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": title, class: "portrait" },
    s("rect", { x: LEFT, y: 10, width: WIDTH - 10 - LEFT, height: HEIGHT - BELOW - 10, class: "box" }),
    ...across.ticks.map((v) => s("text", { x: across.place(v), y: HEIGHT - BELOW + 16, "text-anchor": "middle" }, tick(v))),
    ...up.ticks.map((v) => s("text", { x: LEFT - 6, y: up.place(v) + 4, "text-anchor": "end" }, tick(v))),
    s("text", { x: (LEFT + WIDTH) / 2, y: HEIGHT - 4, "text-anchor": "middle" }, x),
    s("path", { d: arrows.map(([a, b, u, v]) => arrow(across.place(a), up.place(b), u, -v)).join(""), class: "arrows" }),
    ...dots.map(([a, b]) => s("circle", { cx: across.place(a), cy: up.place(b), r: 2.2, class: "dot" })),
    s("polyline", { points: line.map(at).join(" "), class: "curve" }),
    s("circle", { cx: across.place(line[0][0]), cy: up.place(line[0][1]), r: 4.5, class: "begin" }),
    ...inside.map((rest) => s("rect", { x: across.place(rest.x) - 4, y: up.place(rest.y) - 4, width: 8, height: 8, class: `rest ${RESTS[rest.stable]}` })),
  );
  const words = [
    "the curve begins at the circle",
    arrows.length && "the arrows show where the equation leads",
    inside.length && "squares are points of rest, full if stable",
  ];
  return h("figure", {}, h("figcaption", {}, `${title}: ${words.filter(Boolean).join("; ")}`), svg);
}

// A line with a head, centred, in the direction (u, v) of the screen.
function arrow(x, y, u, v) {
  const tip = [x + ARROW * u, y + ARROW * v];
  const side = (k) => `${(tip[0] - 4 * u + k * 2.5 * v).toFixed(1)} ${(tip[1] - 4 * v - k * 2.5 * u).toFixed(1)}`;
  const end = `${tip[0].toFixed(1)} ${tip[1].toFixed(1)}`;
  return `M${(x - ARROW * u).toFixed(1)} ${(y - ARROW * v).toFixed(1)}L${end}M${side(1)}L${end}L${side(-1)}`;
}

const tick = (value) => figure(Number(value.toPrecision(2)));
const within = (value, [low, high]) => low <= value && value <= high;

function points(a, b) {
  if (!a || !b) return [];
  return a.map((value, i) => [value, b[i]]).filter(([p, q]) => Number.isFinite(p) && Number.isFinite(q));
}

// The place of a value between two ends, and three ticks.
function scale([low, high], [from, to]) {
  const ticks = [0.1, 0.5, 0.9].map((part) => low + part * (high - low));
  return { place: (v) => from + ((v - low) / (high - low)) * (to - from), ticks };
}
