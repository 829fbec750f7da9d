// The second screen: what each column is, what the check says, what is known, and the start of the search.

import { get, post } from "../api.js";
import { button, field, h, replace, select } from "../dom.js";
import { clear, trajectories } from "../plots.js";
import { knowledge } from "./knowledge.js";

const ROLES = [
  ["time", "Time"],
  ["value", "Measured"],
  ["value 1", "Measured: a rate of change (velocity)"],
  ["value 2", "Measured: an acceleration"],
  ["replicate", "Measured: one experiment of several"],
  ["input", "Known input"],
  ["experiment", "Names the experiment"],
  ["weight", "Weight of the sample"],
  ["unused", "Not used"],
];
const SIGNS = { error: "✖", warning: "!", note: "i" };
const TIMES = [
  [10, "10 seconds"],
  [30, "30 seconds"],
  [60, "1 minute"],
  [120, "2 minutes"],
  [300, "5 minutes"],
  [900, "15 minutes"],
  [3600, "1 hour"],
];
const kept = new Map(); // answers by table, so that going back loses nothing

export default async function columns(page, id) {
  const described = await get(`/api/data/${id}`);
  page.title(described.name);
  const form = kept.get(id) || { seconds: 60, ...described.form };
  kept.set(id, form);

  const grid = h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "First rows of the table" });
  const said = h("div", { "aria-live": "polite" });
  const plotBox = h("div", {});
  const plots = [];
  const chooser = h("div", {});
  const knownBox = h("div", {});
  const begin = button("Find the equation", start, { class: "primary" });
  let experiment = 0;
  let latest = 0;
  let drawnFor = "";

  async function look() {
    latest += 1;
    const mine = latest;
    begin.disabled = true;
    if (!said.firstChild) replace(said, h("p", { class: "quiet" }, "Looking for gaps, outliers and noise."));
    let facts;
    try {
      facts = await post(`/api/data/${id}/check`, form);
    } catch (error) {
      if (mine === latest) replace(said, finding("error", error.message));
      return;
    }
    if (mine !== latest || !page.current()) return;
    if (!form.columns) form.columns = facts.table.columns.map(({ role, derivative, unit }) => ({ role, derivative, unit }));
    drawTable(facts.table);
    const lines = facts.findings.map((f) => finding(f.severity, f.sentence));
    if (facts.error) lines.unshift(finding("error", facts.error));
    replace(said, lines, facts.notes.map((note) => h("p", { class: "quiet" }, note)));
    begin.disabled = Boolean(facts.error) || facts.findings.some((f) => f.severity === "error");
    if (!facts.problem) return;
    experiment = Math.min(experiment, facts.problem.experiments.length - 1);
    drawPlot(facts.problem);
    // The form is drawn again only if other things can be known, so that nothing is lost while typing.
    const names = JSON.stringify([facts.problem.variables, facts.problem.states, facts.problem.inputs.length > 0, facts.problem.n_experiments > 1]);
    if (names !== drawnFor) {
      drawnFor = names;
      const byColumn = form.columns.some((column) => column.role === "input");
      replace(knownBox, knowledge(form, facts.problem, byColumn, changed));
    }
  }

  let timer = 0;
  function changed() {
    clearTimeout(timer);
    timer = setTimeout(look, 250);
  }

  // The derivative that a measured column holds, by choice or by its name.
  const primes = (column) => column.derivative ?? (column.variable?.match(/'+$/)?.[0].length ?? 0);

  function drawTable(table) {
    const focused = document.activeElement?.id;
    const heads = table.columns.map((column, i) =>
      h(
        "th",
        { scope: "col" },
        h("span", { class: "name" }, column.name),
        select(
          ROLES,
          column.role === "value" && primes(column) ? `value ${primes(column)}` : column.role,
          (value) => {
            const [role, derivative] = value.split(" ");
            form.columns[i] = { ...form.columns[i], role, derivative: role === "value" ? Number(derivative ?? 0) : null };
            look();
          },
          { id: `role-${i}`, "aria-label": `Role of column ${column.name}` },
        ),
        ["time", "value", "input"].includes(column.role) && unit(column, i),
        h("small", { class: "quiet" }, column.variable ? `called ${column.variable}` : "\u00a0"),
      ),
    );
    const rows = table.rows.map((cells) => h("tr", {}, cells.map((cell, i) => h("td", { class: table.columns[i].role === "unused" ? "quiet" : "" }, cell))));
    replace(
      grid,
      h("table", { class: "figures" }, h("caption", {}, `The first ${table.rows.length} of ${table.n_rows.toLocaleString("en")} rows`), h("thead", {}, h("tr", {}, heads)), h("tbody", {}, rows)),
    );
    if (focused?.startsWith("role-")) document.getElementById(focused)?.focus();
  }

  function unit(column, i) {
    const box = h("input", {
      type: "text",
      class: "unit",
      id: `role-unit-${i}`,
      value: column.unit ?? column.header_unit,
      placeholder: "unit",
      spellcheck: "false",
      "aria-label": `Unit of column ${column.name}`,
      onchange: () => {
        form.columns[i] = { ...form.columns[i], unit: box.value.trim() };
        look();
      },
    });
    return box;
  }

  function drawPlot(problem) {
    const names = problem.experiments.map((e, i) => [String(i), e.name]);
    replace(
      chooser,
      names.length > 1 &&
        field(
          `Experiment (${problem.n_experiments})`,
          select(names, String(experiment), (value) => {
            experiment = Number(value);
            drawPlot(problem);
          }),
        ),
    );
    const shown = problem.experiments[experiment];
    const inputs = Object.keys(shown.inputs);
    const facts = { t: shown.t, columns: {}, inputs: shown.inputs };
    trajectories(plotBox, plots, shown, [{ label: "input", facts, colour: "input" }], [...Object.keys(shown.columns), ...inputs], 220);
  }

  async function start() {
    begin.disabled = true;
    page.complain("");
    try {
      const { run } = await post("/api/runs", { data: id, form });
      page.go(`/run/${encodeURIComponent(run)}`);
    } catch (error) {
      page.complain(error.message);
      begin.disabled = false;
    }
  }

  replace(
    page.main,
    h("h1", {}, described.name),
    h("section", { "aria-labelledby": "roles" }, h("h2", { id: "roles" }, "What is in each column?"), grid),
    h(
      "div",
      { class: "two" },
      h("section", { "aria-labelledby": "record" }, h("h2", { id: "record" }, "The record"), chooser, plotBox),
      h("section", { "aria-labelledby": "check" }, h("h2", { id: "check" }, "What the check says"), said),
    ),
    h("section", { "aria-labelledby": "known" }, h("h2", { id: "known" }, "What do you know?"), h("p", { class: "quiet" }, "Leave open what you do not know."), knownBox),
    h(
      "section",
      { class: "start", "aria-label": "Start" },
      field("Time for the search", select(TIMES, String(form.seconds), (value) => (form.seconds = Number(value)))),
      begin,
    ),
  );
  await look();
  return () => {
    clearTimeout(timer);
    latest += 1;
    clear(plots);
  };
}

export function finding(severity, sentence) {
  const word = { error: "Error", warning: "Warning", note: "Note" }[severity];
  return h("p", { class: `finding ${severity}` }, h("span", { class: "sign", "aria-hidden": "true" }, SIGNS[severity]), h("span", { class: "unseen" }, `${word}: `), sentence);
}
