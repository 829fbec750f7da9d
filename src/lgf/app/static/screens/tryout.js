// Sliders for start, constants and end; formulas for the inputs; the curve follows at once.

import { get, post, runPath } from "../api.js";
import { button, copy, field, h, replace, select, short } from "../dom.js";
import { math } from "../mathml.js";
import { clear, trajectories } from "../plots.js";

export default async function tryout(page, run, which) {
  page.title(`Try ${run}`);
  const facts = await get(runPath(run));
  if (!facts.view) throw new Error("This run has no equation yet; go on with it first.");
  const view = facts.view;
  const number = Math.min(which === undefined ? view.equations.findIndex((e) => e.chosen) : Number(which), view.equations.length - 1);
  const equation = view.equations[number];
  const address = `/run/${encodeURIComponent(run)}`;
  page.steps(4, { 3: address });

  let experiment = 0;
  let trial = {};
  let last = null;
  const box = h("div", {});
  const plots = [];
  const sliders = h("div", { class: "sliders" });
  const sentence = h("p", { class: "finding warning", role: "status", hidden: true });
  const command = button("Copy the lgf command", () => copy(line(), command));
  const constantsMoved = () => trial.constants.some((v, i) => v !== equation.constants[i].by_experiment[experiment]);

  function reset() {
    const observation = view.problem.experiments[experiment];
    trial = {
      initial: [...equation.initial[experiment]],
      constants: equation.constants.map((c) => c.by_experiment[experiment]),
      inputs: {},
      end: observation.t[observation.t.length - 1],
    };
    drawSliders();
    solve();
  }

  // One request at a time; when it is back, the newest wish goes out.
  let busy = false;
  let wished = false;
  let band = null; // it takes longer than the curve, so it is asked for when the sliders rest
  let settled = 0;
  async function solve() {
    wished = true;
    band = null;
    clearTimeout(settled);
    settled = setTimeout(drawBand, 200);
    if (busy) return;
    busy = true;
    while (wished && page.current()) {
      wished = false;
      try {
        last = await post(runPath(run, "/simulate"), asked());
        tell(last.sentence);
        draw();
      } catch (error) {
        tell(error.message);
      }
    }
    busy = false;
  }

  function asked() {
    const initial = Object.fromEntries(equation.variables.map((name, i) => [name, trial.initial[i]]));
    const moved = constantsMoved() ? { constants: trial.constants } : {};
    return { equation: number, experiment, initial, ...moved, inputs: trial.inputs, end: trial.end };
  }

  async function drawBand() {
    const question = asked();
    const found = await post(runPath(run, "/band"), question).catch(() => null);
    if (!page.current() || busy || JSON.stringify(question) !== JSON.stringify(asked())) return;
    band = found;
    draw();
  }

  function tell(text) {
    sentence.hidden = !text;
    sentence.textContent = text;
  }

  function draw() {
    const observation = view.problem.experiments[experiment];
    const measured = Object.keys(observation.columns);
    const states = equation.variables.filter((name) => !name.endsWith("'") && !measured.includes(name));
    trajectories(box, plots, observation, [{ label: "equation", facts: last, colour: "model", band }], [...measured, ...states, ...Object.keys(last.inputs)], 260);
    command.disabled = constantsMoved();
    command.title = command.disabled ? "The command line solves the equation with its own constants." : "";
  }

  function slider(label, value, low, high, change) {
    const digits = h("input", { type: "number", step: "any", value: short(value), "aria-label": `${label}, as a number` });
    const range = h("input", { type: "range", min: String(low), max: String(high), step: "any" });
    range.value = String(value);
    range.addEventListener("input", () => {
      digits.value = short(Number(range.value));
      change(Number(range.value));
      solve();
    });
    digits.addEventListener("input", () => {
      if (digits.value === "" || !Number.isFinite(Number(digits.value))) return;
      range.value = digits.value;
      change(Number(digits.value));
      solve();
    });
    return h("div", { class: "slider" }, field(label, range), digits);
  }

  function drawSliders() {
    const observation = view.problem.experiments[experiment];
    const begin = observation.t[0];
    const length = observation.t[observation.t.length - 1] - begin;
    const scale = Math.max(...Object.values(observation.columns).flat().filter((v) => v !== null).map(Math.abs), 1e-12);
    const around = (value) => Math.max(2 * Math.abs(value), scale);
    replace(
      sliders,
      h("h2", {}, "Start"),
      equation.variables.map((name, i) => slider(`${name} at the start`, trial.initial[i], -around(trial.initial[i]), around(trial.initial[i]), (v) => (trial.initial[i] = v))),
      slider("End of the curve", trial.end, begin + length / 100, begin + 5 * length, (v) => (trial.end = v)),
      equation.inputs.length > 0 && [h("h2", {}, "Input"), equation.inputs.map((name) => inputField(name))],
      equation.constants.length > 0 && [
        h("h2", {}, "Constants"),
        equation.constants.map((c, i) => {
          const reach = Math.max(Math.abs(c.value), 1e-12);
          return slider(`C in ${c.term}`, trial.constants[i], c.value - 2 * reach, c.value + 2 * reach, (v) => (trial.constants[i] = v));
        }),
      ],
      h("div", { class: "row" }, button("As it was", reset)),
    );
  }

  function inputField(name) {
    const text = h("input", {
      type: "text",
      spellcheck: "false",
      placeholder: "as in the data",
      value: trial.inputs[name] || "",
      oninput: () => {
        if (text.value.trim()) trial.inputs[name] = text.value;
        else delete trial.inputs[name];
        solve();
      },
    });
    return field(`${name} as a formula in t`, text, "For example 0, or 2*sin(0.5*t).");
  }

  function line() {
    const start = equation.variables.map((name, i) => `${name}=${short(trial.initial[i])}`).join(",");
    const inputs = Object.entries(trial.inputs).map(([name, formula]) => ` --forcing ${quote(`${name}=${formula}`)}`).join("");
    return `lgf simulate ${quote(facts.folder)} --initial ${quote(start)}${inputs} --t1 ${short(trial.end)}`;
  }

  function table() {
    const names = [...Object.keys(last.columns), ...Object.keys(last.inputs)];
    const columns = [last.t, ...names.map((name) => last.columns[name] || last.inputs[name])];
    const rows = last.t.map((_, i) => columns.map((column) => (column[i] === null ? "" : String(column[i]))).join(","));
    const file = new Blob([[["t", ...names].join(","), ...rows].join("\n"), "\n"], { type: "text/csv" });
    const link = h("a", { href: URL.createObjectURL(file), download: `${run}-curve.csv` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  const experiments = view.problem.experiments.map((e, i) => [String(i), e.name]);
  replace(
    page.main,
    h("h1", {}, "Try it"),
    h("div", { class: "equation card" }, math(equation.math, true)),
    experiments.length > 1 && field("Compare with experiment", select(experiments, "0", (value) => ((experiment = Number(value)), reset()))),
    h("div", { class: "two wide-left" }, h("section", { "aria-label": "Curve" }, sentence, box, h("div", { class: "row" }, button("Download CSV", table), command)), sliders),
  );
  reset();
  return () => {
    clearTimeout(settled);
    clear(plots);
  };
}

function quote(text) {
  return /^[\w./=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
