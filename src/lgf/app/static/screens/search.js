// The search: the best equation so far, its curve on the data, error against length, error over time.

import { post, runPath } from "../api.js";
import { button, h, percent, replace, seconds } from "../dom.js";
import { math } from "../mathml.js";
import { clear, Plot, trajectories } from "../plots.js";
import { goOn } from "./result.js";

const SPEAK = 5000; // ms between two sentences for a screen reader

export default function search(page, facts, reload) {
  const equation = h("div", { class: "equation" });
  const words = h("p", { class: "lead" });
  const clock = h("span", { class: "clock" });
  const bar = h("progress", { max: 1, "aria-label": "Time used" });
  const actions = h("div", { class: "row" });
  const curves = h("div", {});
  const plots = [];
  const front = new Plot({ title: "Error against length", x: "length", log: true, height: 220 });
  const history = new Plot({ title: "Error of the best over time", x: "seconds", log: true, height: 220 });
  const frontBox = h("div", {}, front.element);
  const historyBox = h("div", {}, history.element);
  let spoken = 0;
  let shownText = null;
  let row = facts;

  const stop = button("Stop", async () => {
    stop.disabled = true;
    try {
      await post(runPath(facts.run, "/stop"));
    } catch (error) {
      page.complain(error.message);
    }
    setTimeout(() => (stop.disabled = false), 1500);
  });

  function sentence() {
    const progress = row.progress || {};
    const best = progress.best;
    switch (row.state) {
      case "waiting":
        return "Another search is going on. This one starts when it is over.";
      case "preparing":
        return "Preparing. The first search on a computer compiles the numerical kernels, which takes a minute or two.";
      case "searching":
        return best ? `Best of ${progress.fits} equations so far: error ${percent(best.error)}. Settled: ${Math.round(100 * (progress.settled || 0))} %.` : "Looking at the first equations.";
      case "refining":
        return `Comparing the best of ${progress.fits} equations once more.`;
      case "stopping":
        return "Stopping: the best so far is fitted once more. Press again to end it at once; what was fitted is kept.";
      case "failed":
      case "died":
        return row.sentence;
      default:
        return row.sentence || "Stopped. The best so far is kept.";
    }
  }

  function update(next) {
    row = next;
    const progress = row.progress || {};
    words.textContent = sentence();
    stop.textContent = row.state === "stopping" ? "End it at once" : "Stop";
    const limit = progress.max_seconds;
    clock.textContent = row.live && progress.fits ? `${seconds(Math.min(progress.seconds, limit || Infinity))}${limit ? ` of ${seconds(limit)}` : ""}` : "";
    if (row.live && limit && progress.fits) bar.value = Math.min(progress.seconds / limit, 1);
    else bar.removeAttribute("value");
    bar.hidden = !row.live;
    replace(actions, row.live || row.state === "waiting" ? [clock, stop] : goOn(page, row, reload));
    const best = progress.best;
    frontBox.hidden = historyBox.hidden = !best;
    const observation = facts.problem.experiments[0];
    if (best && best.text !== shownText) {
      shownText = best.text;
      replace(equation, math(best.math, true));
      trajectories(curves, plots, observation, [{ label: "equation", facts: best.curves[0], colour: "model" }]);
    } else if (!best) {
      replace(equation, h("p", { class: "quiet" }, "The best equation so far will stand here."));
      trajectories(curves, plots, observation, []);
    }
    if (best) {
      front.set([{ label: "error", t: progress.front.map((c) => c.complexity), values: progress.front.map((c) => c.error), colour: "model", kind: "dotted" }]);
      const steps = progress.improvements.concat([[progress.seconds, best.error]]).filter(([t], i, all) => i === 0 || t > all[i - 1][0]);
      history.set([{ label: "error", t: steps.map((s) => s[0]), values: steps.map((s) => s[1]), colour: "model", kind: "stepped" }]);
    }
    if (Date.now() - spoken > SPEAK) {
      spoken = Date.now();
      page.say(words.textContent);
    }
  }

  replace(
    page.main,
    h("h1", {}, facts.run),
    h("section", { class: "card", "aria-label": "Best so far" }, words, equation, bar, actions),
    h("div", { class: "two" }, h("section", { "aria-label": "Curve" }, curves), h("section", { "aria-label": "Progress" }, frontBox, historyBox)),
  );
  update(facts);
  const leave = () => clear(plots.concat([front, history]));
  leave.update = update;
  return leave;
}
