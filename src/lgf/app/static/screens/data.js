// The first screen: drop a table, take an example, or open an earlier run.

import { get, post, upload } from "../api.js";
import { button, h, replace } from "../dom.js";
import { math } from "../mathml.js";
import { listen, runs } from "../news.js";

export const STATES = {
  preparing: "Preparing",
  searching: "Searching",
  refining: "Comparing the best",
  stopping: "Stopping",
  waiting: "Waiting for its turn",
  stopped: "Stopped",
  failed: "Failed",
  died: "Ended without a word",
  finished: "Finished",
};

export default async function data(page) {
  page.title("Data");
  const records = await get("/api/records");
  const file = h("input", { type: "file", id: "file", class: "unseen", accept: ".csv,.tsv,.txt,.dat,text/*", onchange: () => take(file.files[0]) });
  const state = h("p", { class: "quiet", role: "status" });
  const zone = h(
    "div",
    { class: "drop" },
    h("h1", {}, "Find the equation behind your measurements"),
    h("p", {}, "Drop a table with a time column and a measured column."),
    file,
    h("label", { for: "file", class: "button primary" }, "Choose a file"),
    h("p", { class: "quiet" }, "CSV, TSV or text; commas, semicolons and tabs, decimal points and decimal commas. Nothing leaves this computer."),
    state,
  );

  async function take(chosen) {
    if (!chosen) return;
    page.complain("");
    state.textContent = `Reading ${chosen.name} ...`;
    try {
      const { id } = await upload(chosen);
      page.go(`/data/${id}`);
    } catch (error) {
      state.textContent = "";
      page.complain(error.message);
    }
    file.value = "";
  }

  const over = (event) => {
    event.preventDefault();
    zone.classList.add("over");
  };
  const out = () => zone.classList.remove("over");
  const drop = (event) => {
    event.preventDefault();
    out();
    if (event.dataTransfer.files.length > 1) page.complain("Several files were dropped; drop one table at a time, with a column that tells experiments apart.");
    else take(event.dataTransfer.files[0]);
  };
  document.addEventListener("dragover", over);
  document.addEventListener("dragleave", out);
  document.addEventListener("drop", drop);

  const examples = h(
    "section",
    { "aria-labelledby": "examples" },
    h("h2", { id: "examples" }, "Or try an example"),
    h(
      "ul",
      { class: "cards" },
      records.map((record) =>
        h(
          "li",
          {},
          h("h3", {}, record.name),
          h("p", {}, record.description),
          button(`Take ${record.name}`, async () => {
            try {
              const { id } = await post(`/api/data?record=${encodeURIComponent(record.name)}`);
              page.go(`/data/${id}`);
            } catch (error) {
              page.complain(error.message);
            }
          }),
        ),
      ),
    ),
  );

  const list = h("section", { "aria-labelledby": "earlier" });
  const chosen = new Set();
  const draw = () => replace(list, runList(page, chosen, draw));
  draw();
  const stop = listen((change) => {
    if (!(change.kind === "progress" && list.contains(document.activeElement))) draw();
  });
  replace(page.main, zone, list, examples);
  return () => {
    stop();
    document.removeEventListener("dragover", over);
    document.removeEventListener("dragleave", out);
    document.removeEventListener("drop", drop);
  };
}

function runList(page, chosen, draw) {
  const rows = [...runs.values()].sort((a, b) => b.changed - a.changed);
  if (!rows.length) return [];
  const compare = button(
    chosen.size > 1 ? `Compare ${chosen.size} runs` : "Compare: choose two or more",
    () => page.go(`/compare/${[...chosen].map(encodeURIComponent).join(",")}`),
    { disabled: chosen.size < 2 },
  );
  const body = rows.map((row) => {
    const address = `#/run/${encodeURIComponent(row.run)}`;
    const pick = h("input", {
      type: "checkbox",
      checked: chosen.has(row.run),
      disabled: !row.result,
      "aria-label": `Compare ${row.run}`,
      onchange: () => {
        if (pick.checked) chosen.add(row.run);
        else chosen.delete(row.run);
        draw();
      },
    });
    const best = row.result || row.progress?.best;
    return h(
      "tr",
      {},
      h("td", {}, h("label", { class: "target" }, pick)),
      h("th", { scope: "row" }, h("a", { href: address }, row.run)),
      h("td", {}, h("span", { class: `state ${row.state}` }, STATES[row.state] || row.state)),
      h("td", { class: "equation-cell" }, best ? math(best.math) : ""),
      h("td", {}, row.result ? row.result.error_text : ""),
    );
  });
  return [
    h("h2", { id: "earlier" }, "Earlier runs"),
    h(
      "div",
      { class: "scroll" },
      h(
        "table",
        { class: "runs" },
        h("caption", { class: "unseen" }, "Runs in this folder"),
        h("thead", {}, h("tr", {}, ["Pick", "Run", "State", "Equation", "Error"].map((name) => h("th", { scope: "col" }, name)))),
        h("tbody", {}, body),
      ),
    ),
    h("p", {}, compare),
  ];
}
