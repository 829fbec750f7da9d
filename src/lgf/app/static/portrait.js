// The phase portrait: the trajectory and the samples in planes of two variables, as SVG.

import { h, short } from "./dom.js";

const SPACE = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT, LEFT, BELOW] = [360, 260, 54, 36];
const MOST_PLANES = 3;

function s(tag, attributes, ...children) {
  const element = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// The planes of two states, or of the state and its rate of change; nothing for one equation of first order.
export function phasePortrait(variables, states, observation, curve) {
  const names = states.length > 1 ? states : variables;
  const pairs = names.flatMap((x, i) => names.slice(i + 1).map((y) => [x, y])).slice(0, MOST_PLANES);
  return pairs.filter(([x, y]) => curve.columns[x] && curve.columns[y]).map(([x, y]) => plane(x, y, observation, curve));
}

function plane(x, y, observation, curve) {
  const line = points(curve.columns[x], curve.columns[y]);
  const dots = points(observation.columns[x], observation.columns[y]);
  const all = [...line, ...dots];
  if (!line.length) return null;
  const [across, up] = [0, 1].map((k) => scale(all.map((p) => p[k]), k === 0 ? [LEFT, WIDTH - 10] : [HEIGHT - BELOW, 10]));
  const at = ([a, b]) => `${across.place(a).toFixed(1)},${up.place(b).toFixed(1)}`;
  const title = `${y} against ${x}`;
  const svg = s(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": title, class: "portrait" },
    s("rect", { x: LEFT, y: 10, width: WIDTH - 10 - LEFT, height: HEIGHT - BELOW - 10, class: "box" }),
    ...across.ticks.map((v) => s("text", { x: across.place(v), y: HEIGHT - BELOW + 16, "text-anchor": "middle" }, short(v))),
    ...up.ticks.map((v) => s("text", { x: LEFT - 6, y: up.place(v) + 4, "text-anchor": "end" }, short(v))),
    s("text", { x: (LEFT + WIDTH) / 2, y: HEIGHT - 4, "text-anchor": "middle" }, x),
    ...dots.map(([a, b]) => s("circle", { cx: across.place(a), cy: up.place(b), r: 2.2, class: "dot" })),
    s("polyline", { points: line.map(at).join(" "), class: "curve" }),
    s("circle", { cx: across.place(line[0][0]), cy: up.place(line[0][1]), r: 4.5, class: "begin" }),
  );
  return h("figure", {}, h("figcaption", {}, `${title}: the curve begins at the circle`), svg);
}

function points(a, b) {
  if (!a || !b) return [];
  return a.map((value, i) => [value, b[i]]).filter(([p, q]) => Number.isFinite(p) && Number.isFinite(q) && p !== null && q !== null);
}

// The place of a value between two ends, and three ticks.
function scale(values, [from, to]) {
  const [low, high] = [values.reduce((p, q) => Math.min(p, q)), values.reduce((p, q) => Math.max(p, q))];
  const span = high - low || Math.abs(high) || 1;
  const [least, most] = [low - 0.05 * span, high + 0.05 * span];
  return { place: (v) => from + ((v - least) / (most - least)) * (to - from), ticks: [low, (low + high) / 2, high] };
}
