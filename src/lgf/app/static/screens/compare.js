// Several runs side by side.

import { get, runPath } from "../api.js";
import { h, replace, table } from "../dom.js";
import { math } from "../mathml.js";
import { clear, COLOURS, DASHES, trajectories } from "../plots.js";

export default async function compare(page, list) {
  page.title("Compare");
  const names = list.split(",").map(decodeURIComponent).slice(0, COLOURS.length);
  const all = await Promise.all(names.map((name) => get(runPath(name))));
  const found = all.filter((facts) => facts.view);
  const rows = found.map((facts) => {
    const best = facts.view.equations.find((e) => e.chosen);
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, h("a", { href: `#/run/${encodeURIComponent(facts.run)}` }, facts.run)),
      h("td", { class: "equation-cell" }, math(best.math)),
      h("td", {}, best.error_text),
      h("td", {}, best.prediction_text || ""),
      h("td", {}, String(best.complexity)),
      h("td", {}, facts.view.trust),
      h("td", {}, best.stability || ""),
      h("td", {}, facts.view.problem.known.join(" ") || "nothing"),
      h("td", {}, `${facts.view.evaluations} in ${Math.round(facts.view.seconds)} s`),
    );
  });
  const box = h("div", {});
  const plots = [];
  replace(
    page.main,
    h("h1", {}, "Compare runs"),
    h("div", { class: "scroll" }, table("Runs side by side", ["Run", "Equation", "Error", "Prediction error", "Length", "Predictions", "Stability", "Known", "Equations"], rows)),
    h("section", { "aria-labelledby": "curves" }, h("h2", { id: "curves" }, "Their curves on the data of the first"), box),
  );
  if (found.length) {
    const curves = await Promise.all(
      found.map(async (facts, i) => {
        const number = facts.view.equations.findIndex((e) => e.chosen);
        return { label: facts.run, facts: await get(runPath(facts.run, `/curve?equation=${number}&experiment=0`)), colour: COLOURS[i], dash: DASHES[i] };
      }),
    );
    if (page.current()) trajectories(box, plots, found[0].view.problem.experiments[0], curves);
  }
  return () => clear(plots);
}
