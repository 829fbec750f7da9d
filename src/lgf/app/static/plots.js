// Plots with uPlot, in the colours of the page, each with its numbers in a table and a line of text under the pointer.

import { h, replace, short, table } from "./dom.js";

// Curves beside each other differ in colour and in dashes.
export const COLOURS = ["model", "second", "third", "fourth"];
export const DASHES = [undefined, [8, 4], [3, 3], [10, 3, 3, 3]];

const plots = new Set();
const LARGEST_TABLE = 200; // rows; a longer series is thinned, and the table says so

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

// series: [{label, t, values, colour, kind: "points" | "line" | "stepped", dash}]
// options: {title, x, y, log, height, pick(index), band}
export class Plot {
  constructor(options) {
    this.options = { height: 240, x: "t", ...options };
    this.box = h("div", { class: "plot", role: "img", "aria-label": this.options.title });
    this.readout = h("p", { class: "readout quiet", "aria-hidden": "true" });
    this.legend = h("p", { class: "legend" });
    this.table = h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": `Table: ${this.options.title}` });
    const details = h("details", { class: "numbers", ontoggle: () => this.fillTable() }, h("summary", {}, "Show as a table"), this.table);
    this.details = details;
    this.element = h(
      "figure",
      {},
      h("figcaption", {}, this.options.title),
      this.legend,
      this.box,
      this.readout,
      details,
    );
    this.series = [];
    this.watch = new ResizeObserver(() => this.resize());
    this.watch.observe(this.box);
    plots.add(this);
  }

  destroy() {
    this.watch.disconnect();
    this.chart?.destroy();
    plots.delete(this);
  }

  resize() {
    const width = this.box.clientWidth;
    if (width > 0 && this.chart && width !== this.chart.width) this.chart.setSize({ width, height: this.options.height });
    else if (width > 0 && !this.chart && this.series.length) this.draw();
  }

  set(series) {
    const same = this.chart && series.length === this.series.length && series.every((s, i) => s.label === this.series[i].label);
    this.series = series;
    if (same) this.chart.setData(this.data());
    else this.draw();
    if (this.details.open) this.fillTable();
  }

  data() {
    const floor = (v) => (this.options.log && v !== null && v <= 0 ? 1e-12 : v);
    const joined = uPlot.join(this.series.map((s) => [s.t, s.values.map(floor)]));
    return joined;
  }

  draw() {
    this.chart?.destroy();
    this.chart = null;
    const edges = this.series.map((s, i) => (s.kind === "edge" ? i + 1 : 0)).filter(Boolean);
    const keys = this.series.filter((s) => s.kind !== "edge").map((s) => h("span", { class: `key ${s.kind || "line"} ${s.colour}` }, s.label));
    if (edges.length) keys.push(h("span", { class: "key band" }, "90 % band"));
    replace(this.legend, keys);
    const width = this.box.clientWidth;
    if (!width || !this.series.length) return;
    const axis = {
      stroke: colour("quiet"),
      grid: { stroke: colour("grid"), width: 1 },
      ticks: { stroke: colour("grid"), width: 1 },
      font: "12px system-ui, sans-serif",
    };
    const options = {
      width,
      height: this.options.height,
      legend: { show: false },
      cursor: { y: false, points: { size: 7 }, drag: { x: true, y: false } },
      scales: { x: { time: false }, y: this.options.log ? { distr: 3 } : {} },
      axes: [
        { ...axis, label: this.options.x, labelSize: 22, size: 32, labelFont: "12px system-ui, sans-serif" },
        { ...axis, size: 60, values: (_, ticks) => ticks.map((v) => (v === null ? "" : short(v))) },
      ],
      series: [{}, ...this.series.map((s) => style(s))],
      bands: edges.length ? [{ series: edges, fill: colour("band") }] : [],
      hooks: { setCursor: [(chart) => this.read(chart)] },
    };
    this.chart = new uPlot(options, this.data(), this.box);
    if (this.options.pick) {
      this.chart.over.addEventListener("click", () => {
        const index = this.chart.cursor.idx;
        if (index !== null && index !== undefined) this.options.pick(this.chart.data[0][index]);
      });
    }
  }

  read(chart) {
    const index = chart.cursor.idx;
    if (index === null || index === undefined) {
      this.readout.textContent = "";
      return;
    }
    const parts = [`${this.options.x} ${short(chart.data[0][index])}`];
    this.series.forEach((s, i) => {
      const value = chart.data[i + 1][index];
      if (value !== null && value !== undefined) parts.push(`${s.label} ${short(value)}`);
    });
    this.readout.textContent = parts.join("   ");
  }

  fillTable() {
    if (!this.details.open || !this.series.length) return;
    const joined = uPlot.join(this.series.map((s) => [s.t, s.values]));
    const every = Math.max(Math.ceil(joined[0].length / LARGEST_TABLE), 1);
    const rows = [];
    for (let i = 0; i < joined[0].length; i += every) {
      rows.push(h("tr", {}, joined.map((column) => h("td", {}, short(column[i] ?? null)))));
    }
    const note = every > 1 ? `${this.options.title}, every ${every}th point` : this.options.title;
    replace(this.table, table(note, [this.options.x, ...this.series.map((s) => s.label)], rows, { class: "figures" }));
  }
}

function style(series) {
  const stroke = colour(series.colour);
  if (series.kind === "points") {
    return { label: series.label, stroke, paths: () => null, points: { show: true, size: 5, fill: stroke, width: 0 } };
  }
  if (series.kind === "marks") {
    return { label: series.label, stroke, paths: () => null, points: { show: true, size: 12, stroke, fill: colour("surface"), width: 3 } };
  }
  if (series.kind === "edge") return { label: series.label, stroke, width: 0, points: { show: false } };
  const paths = series.kind === "stepped" ? uPlot.paths.stepped({ align: 1 }) : undefined;
  const points = series.kind === "dotted" ? { show: true, size: 7, fill: stroke } : { show: false };
  return { label: series.label, stroke, width: series.width || 1.75, dash: series.dash, paths, points, spanGaps: series.kind === "stepped" };
}

export function clear(list) {
  for (const plot of list.splice(0)) plot.destroy();
}

// One plot for each measured or wished variable: the samples, and the curves [{label, facts: {t, columns}, colour, dash}].
export function trajectories(box, old, observation, curves, names, height = 240) {
  const shown = names || Object.keys(observation.columns);
  if (old.length !== shown.length || old.some((plot, i) => plot.variable !== shown[i])) {
    clear(old);
    replace(box);
    for (const name of shown) {
      const plot = new Plot({ title: `${name} over time`, x: "t", height });
      plot.variable = name;
      old.push(plot);
      box.append(plot.element);
    }
  }
  for (const plot of old) {
    const series = [];
    const measured = observation.columns[plot.variable];
    if (measured) series.push({ label: "measured", t: observation.t, values: measured, colour: "data", kind: "points" });
    for (const curve of curves) {
      const input = curve.facts.inputs?.[plot.variable];
      if (input) series.push({ label: "input", t: curve.facts.t, values: input, colour: "input" });
      const values = curve.facts.columns[plot.variable];
      if (!values) continue;
      const [lower, upper] = [curve.band?.lower[plot.variable], curve.band?.upper[plot.variable]];
      if (lower && upper) {
        series.push({ label: "upper end", t: curve.band.t, values: upper, colour: "band", kind: "edge" });
        series.push({ label: "lower end", t: curve.band.t, values: lower, colour: "band", kind: "edge" });
      }
      series.push({ label: curve.label, t: curve.facts.t, values, colour: curve.colour, dash: curve.dash });
    }
    plot.set(series);
  }
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const plot of plots) plot.draw();
});
