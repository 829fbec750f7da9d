// The result: the equation and what it is worth, its curve, the front, the equals, and everything to take away.

import { get, post, runPath } from "../api.js";
import { button, copy, field, h, replace, select, short, table } from "../dom.js";
import { math } from "../mathml.js";
import { clear, COLOURS, DASHES, Plot, trajectories } from "../plots.js";
import { finding } from "./columns.js";
import { phasePortrait } from "../portrait.js";

const LONGER = [["30", "30 seconds"], ["60", "1 minute"], ["300", "5 minutes"], ["900", "15 minutes"], ["3600", "1 hour"]];
const VERDICTS = { confirmed: "good", refuted: "error", inconclusive: "note", "no law found": "error" };
const FILES = {
  "equation.tex": "LaTeX",
  "equation.py": "Python",
  "equation.json": "JSON",
  "front.csv": "Table of equations (CSV)",
};

export default function result(page, facts, reload) {
  const view = facts.view;
  const equations = view.equations;
  const chosen = equations.findIndex((e) => e.chosen);
  const plots = [];
  const residualPlots = [];
  const nextPlots = [];
  const head = h("section", { class: "card", "aria-live": "polite" });
  const constants = h("section", { "aria-labelledby": "constants" });
  const curves = h("div", {});
  const leftOver = h("div", {});
  const portrait = h("div", {});
  const early = h("p", { class: "quiet" });
  const rows = [];
  let selected = chosen;
  let experiment = 0;
  let latest = 0;

  const front = new Plot({ title: "Error against length: click a point to see its equation", x: "length", log: true, height: 260, pick: (length) => {
    const near = equations.map((e, i) => [Math.abs(e.complexity - length), i]).filter(([, i]) => equations[i].front).sort((a, b) => a[0] - b[0])[0];
    if (near) look(near[1]);
  } });

  function drawHead() {
    const equation = equations[selected];
    const other = selected !== chosen && h("p", { class: "finding note" }, "You are looking at another equation. ", button("Back to the chosen one", () => look(chosen)));
    const latex = button("Copy LaTeX", () => copy(equation.latex, latex));
    replace(
      head,
      h("p", { class: "lead" }, words(facts, view)),
      other,
      h("div", { class: "equation" }, math(equation.math, true)),
      selected === chosen && h("p", { class: `finding ${VERDICTS[view.trust]}` }, view.verdict),
      selected === chosen && view.notes.map((sentence) => h("p", {}, sentence)),
      h("p", {}, selected === chosen ? view.summary : `Error ${equation.error_text} of the signal.`),
      h(
        "div",
        { class: "row" },
        h("a", { class: "button primary", href: `#/run/${encodeURIComponent(facts.run)}/try/${selected}` }, "Try it"),
        latex,
      ),
    );
  }

  function drawConstants() {
    const equation = equations[selected];
    const body = equation.constants.map((c) =>
      h("tr", {}, h("td", {}, h("code", {}, c.term)), h("td", {}, c.unit ? `${c.text} ${c.unit}` : c.text), h("td", {}, c.error_text ? `± ${c.error_text}` : "not known"), h("td", {}, c.varies ? `varies by experiment, here ${short(c.by_experiment[experiment])}` : c.determined ? "" : "The data do not determine it.")),
    );
    replace(
      constants,
      h("h2", { id: "constants" }, "Constants"),
      body.length ? h("div", { class: "scroll" }, table("Constants of the equation; C is the constant", ["Term", "C", "Standard error", ""], body)) : h("p", {}, "The equation has no constants."),
      h("p", {}, selected === chosen ? view.stability : equation.stability && `Without its input it is ${equation.stability}.`),
    );
  }

  async function drawCurves() {
    latest += 1;
    const mine = latest;
    let curve;
    try {
      curve = await get(runPath(facts.run, `/curve?equation=${selected}&experiment=${experiment}`));
    } catch (error) {
      page.complain(error.message);
      return;
    }
    if (mine !== latest || !page.current()) return;
    const observation = view.problem.experiments[experiment];
    early.textContent = curve.sentence;
    trajectories(curves, plots, observation, [{ label: "equation", facts: curve, colour: "model", band: curve.band }]);
    replace(portrait, phasePortrait(observation, curve));
    const names = Object.keys(curve.residuals.columns);
    if (residualPlots.length !== names.length) {
      clear(residualPlots);
      replace(leftOver);
      for (const name of names) {
        const plot = new Plot({ title: `What is left of ${name}`, x: "t", height: 160 });
        residualPlots.push(plot);
        leftOver.append(plot.element);
      }
    }
    names.forEach((name, i) => residualPlots[i].set([{ label: "measured minus equation", t: curve.residuals.t, values: curve.residuals.columns[name], colour: "data", kind: "points" }]));
  }

  function look(number) {
    selected = number;
    drawHead();
    drawConstants();
    drawCurves();
    drawFront();
    for (const [see, i] of rows) see.setAttribute("aria-pressed", String(i === selected));
    page.say(equations[selected].text);
  }

  function drawFront() {
    const shown = equations.filter((e) => e.front);
    const at = equations[selected];
    front.set([
      { label: "equations", t: shown.map((e) => e.complexity), values: shown.map((e) => e.error), colour: "data", kind: "dotted" },
      { label: "shown", t: [at.complexity], values: [at.error], colour: "model", kind: "marks" },
    ]);
  }

  function equationTable(list, caption) {
    const predicted = list.some(([e]) => e.prediction_text);
    const body = list.map(([equation, i]) => {
      const see = button("See", () => look(i), { "aria-pressed": String(i === selected), "aria-label": `See ${equation.text}` });
      rows.push([see, i]);
      return h(
        "tr",
        { class: equation.chosen ? "chosen" : "" },
        h("td", {}, see),
        h("td", { class: "equation-cell" }, math(equation.math), equation.constants.some((c) => c.varies) && h("span", { class: "tag" }, "by experiment"), equation.chosen && h("span", { class: "tag" }, "chosen")),
        [String(equation.complexity), equation.error_text, predicted && (equation.prediction_text || "")].filter((text) => text !== false).map((text) => h("td", { class: "number" }, text)),
      );
    });
    return h("div", { class: "scroll" }, table(caption, ["", "Equation", "Length", "Error", ...(predicted ? ["Prediction error"] : [])], body));
  }

  const numbered = equations.map((e, i) => [e, i]);
  const experiments = view.problem.experiments.map((e, i) => [String(i), e.name]);
  const steps = numbered.filter(([e]) => e.step);
  const equals = numbered.filter(([e]) => e.equal && !e.chosen);
  replace(
    page.main,
    h("h1", {}, facts.run),
    head,
    h(
      "div",
      { class: "two" },
      h(
        "section",
        { "aria-labelledby": "curve" },
        h("h2", { id: "curve" }, "Curve and data"),
        experiments.length > 1 && field(`Experiment (${view.problem.n_experiments})`, select(experiments, "0", (value) => {
          experiment = Number(value);
          drawCurves();
          drawConstants();
        })),
        curves,
        early,
        leftOver,
        portrait,
      ),
      h(
        "div",
        {},
        constants,
        h("section", { "aria-labelledby": "equals" }, h("h2", { id: "equals" }, "What the data cannot tell apart"), h("p", {}, view.alternatives), equals.length > 0 && equationTable(equals, "Equations that fit about as well")),
      ),
    ),
    steps.length > 1 && h("section", { "aria-labelledby": "prediction-front" }, h("h2", { id: "prediction-front" }, "The simplest equation at each level of prediction"), equationTable(steps, "Equations by simplicity, each predicting better than all before it")),
    h("section", { "aria-labelledby": "front" }, h("h2", { id: "front" }, "Simpler and more accurate equations"), h("div", { class: "two wide-right" }, front.element, equationTable(numbered.filter(([e]) => e.front), "Equations by length"))),
    h("section", { "aria-labelledby": "measure" }, h("h2", { id: "measure" }, "What to measure next"), nextExperiment(facts, nextPlots)),
    h("section", { "aria-labelledby": "take" }, h("h2", { id: "take" }, "Take it with you"), takeaways(facts)),
    h("section", { "aria-labelledby": "next" }, h("h2", { id: "next" }, "Go on"), h("div", { class: "row" }, goOn(page, facts, reload))),
    h(
      "details",
      {},
      h("summary", {}, "What was known, and what the check said"),
      h("ul", {}, (view.problem.known.length ? view.problem.known : ["Nothing was known; the search used the data only."]).map((s) => h("li", {}, s)), view.start.map((s) => h("li", {}, `Tried first: ${s}`))),
      view.findings.map((f) => finding(f.severity, f.sentence)),
      h("p", { class: "quiet" }, `${view.evaluations} equations in ${Math.round(view.seconds)} s; seed ${view.seed}; lgf ${view.versions.lgf}; folder ${facts.folder}`),
    ),
  );
  look(chosen);
  const leave = () => {
    latest += 1;
    clear(plots);
    clear(residualPlots);
    clear(nextPlots);
    front.destroy();
  };
  return leave;
}

function words(facts, view) {
  const error = view.equations.find((e) => e.chosen).error_text;
  if (facts.state === "died" || facts.state === "failed") return `${facts.sentence} The equation below is the one from before.`;
  if (view.interrupted) return `Stopped. The best so far is kept: error ${error} of the signal.`;
  if (view.trust === "no law found") return `No law found in ${Math.round(view.seconds)} s. Below is the best of what was tried.`;
  return `Found in ${Math.round(view.seconds)} s. Error ${error} of the signal.`;
}

function takeaways(facts) {
  const link = (href, label, properties = {}) => h("a", { class: "button", href, download: "", ...properties }, label);
  const files = facts.files.filter((name) => name in FILES).map((name) => link(runPath(facts.run, `/files/${name}`), FILES[name]));
  const report = facts.files.includes("report.html") && link(runPath(facts.run, "/files/report.html"), "Report", { download: undefined, target: "_blank", rel: "noopener" });
  return h("div", { class: "row" }, files, report, link(runPath(facts.run, "/data.csv"), "Data (CSV)"));
}

// The experiment that tells the equally good equations apart, worked out when it is asked for.
function nextExperiment(facts, plots) {
  const box = h("div", { "aria-live": "polite" });
  const ask = button("Suggest the next experiment", async () => {
    ask.disabled = true;
    replace(box, h("p", { class: "quiet" }, "Comparing what the equations predict for many experiments ..."));
    try {
      const found = await post(runPath(facts.run, "/suggest"));
      const curves = h("div", {});
      replace(box, h("p", {}, found.sentence), curves);
      const shown = found.predictions.slice(0, COLOURS.length);
      trajectories(curves, plots, { t: [], columns: {} }, shown.map((p, i) => ({ label: i ? `other equation ${i}` : "chosen equation", facts: p, colour: COLOURS[i], dash: DASHES[i] })), found.measured, 220);
      replace(box.appendChild(h("ul", {})), shown.slice(1).map((p, i) => h("li", {}, `Other equation ${i + 1}: `, h("code", {}, p.text.replaceAll("\n", "; ")))));
    } catch (error) {
      replace(box, h("p", {}, error.message));
    }
    ask.disabled = false;
  });
  return [box, ask];
}

// Search longer, or anew with other knowledge.
export function goOn(page, facts, reload) {
  let time = "60";
  const longer = button(facts.result ? "Search longer" : "Go on", async () => {
    longer.disabled = true;
    try {
      await post(runPath(facts.run, "/resume"), { seconds: Number(time) });
      await reload();
    } catch (error) {
      longer.disabled = false;
      page.complain(error.message);
    }
  });
  const again = button("Change what is known and search anew", async () => {
    try {
      const { id } = await post(runPath(facts.run, "/again"));
      page.go(`/data/${id}`);
    } catch (error) {
      page.complain(error.message);
    }
  });
  return [select(LONGER, time, (value) => (time = value), { "aria-label": "Time to go on" }), longer, facts.editable !== false && again];
}
