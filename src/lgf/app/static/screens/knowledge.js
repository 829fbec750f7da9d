// The form of what is known. Each answer changes `form`, which has the names that the server reads.

import { button, field, h, replace, select } from "../dom.js";

const FUNCTIONS = ["sin", "cos", "exp", "log", "sqrt", "abs", "tanh"];
const choice = (value) => (value === null || value === undefined ? "" : String(value));
const truth = (text) => (text === "" ? null : text === "true");

export function knowledge(form, problem, inputByColumn, changed) {
  const set = (name) => (value) => {
    form[name] = value;
    changed();
  };
  const first = problem.states[0];
  const second = problem.states[1] || form.hidden?.[0];
  const several = Boolean(second);
  const simple = h(
    "div",
    { class: "fields" },
    field(
      "Order: the highest rate of change in it",
      select(
        [["", "I do not know"], ["1", `1: ${first}' (growth, decay, cooling)`], ["2", `2: ${first}'' (things that swing)`], ["3", "3"], ["4", "4"]],
        choice(form.order),
        (value) => set("order")(value === "" ? null : Number(value)),
      ),
    ),
    field(
      "If left alone, does it stay bounded?",
      select([["", "I do not know"], ["true", "Yes, it comes to rest or stays bounded"], ["false", "No, it grows"]], choice(form.stable), (value) => set("stable")(truth(value))),
    ),
    field(
      "Do its laws change with time?",
      select([["", "I do not know"], ["true", "No: time does not stand in the equation by itself"]], choice(form.autonomous), (value) => set("autonomous")(truth(value))),
    ),
  );
  return [
    simple,
    h("div", { class: "fields" }, inputs(form, inputByColumn, changed), initial(form, problem, changed)),
    more("More: functions, terms, signs, your own equation", form, [
      functions(form, changed),
      h(
        "div",
        { class: "fields" },
        lines(form, "required", "Terms that must be in it, one a line", several ? `${first}: ${first}*${second}` : `${first}^3`, changed),
        lines(form, "forbidden", "Terms that cannot be in it, one a line", several ? `${first}: ${second}` : "t", changed),
        lines(form, "hidden", "A state that was not measured: its name", "lynx", changed, "It gets an equation and a path. One can be inferred."),
        several && lines(form, "known", "Equations that are known, one a line", `${first}' = ${second}`, changed, "Their numbers stay as they are; C is fitted."),
        several && lines(form, "conserved", "Sums that do not change, one a line", problem.states.join(" + "), changed),
        several && lines(form, "populations", "States that stay zero once they are zero, one a line", first, changed),
      ),
      problem.n_experiments > 1 && lines(form, "vary", "Terms whose factor differs between experiments, one a line", first, changed, "Left empty, the data decide."),
      signs(form, problem, changed),
      lines(
        form,
        "start",
        several ? "Your own equations to try first, one system a line" : "Your own equations to try first, one a line",
        several ? `${problem.states.map((s) => `${s}' = C*${s}`).join("; ")}` : `${first}'' = C*${first}' + C*${first}`,
        changed,
        "Write C for a number that is not known.",
      ),
    ]),
  ];
}

function more(title, form, parts) {
  const texts = ["required", "forbidden", "known", "conserved", "populations", "hidden", "vary", "bounds", "start"];
  const used = form.functions || texts.some((name) => form[name]?.length);
  return h("details", { open: Boolean(used) }, h("summary", {}, title), parts);
}

function inputs(form, byColumn, changed) {
  if (byColumn) return h("div", { class: "field" }, h("span", { class: "label" }, "Input that drives it"), h("p", { class: "quiet" }, "Given by a column of the table."));
  const given = form.inputs?.length ? "formula" : form.forced === false ? "none" : "";
  const text = h("input", { type: "text", value: form.inputs?.[0]?.formula || "", placeholder: "cos(2*t)", spellcheck: "false", oninput: () => apply("formula") });
  const formula = field("Formula of the input, in t", text);
  const apply = (kind) => {
    formula.hidden = kind !== "formula";
    form.forced = kind === "none" ? false : null;
    form.inputs = kind === "formula" && text.value.trim() ? [{ name: "F", formula: text.value }] : [];
    changed();
  };
  formula.hidden = given !== "formula";
  return h(
    "div",
    {},
    field("Does a known input drive it?", select([["", "I do not know"], ["none", "No"], ["formula", "Yes, and I know its formula"]], given, apply), "An input that was recorded is a column of the table: choose it above."),
    formula,
  );
}

function initial(form, problem, changed) {
  form.initial = form.initial || {};
  for (const name of Object.keys(form.initial)) if (!problem.variables.includes(name)) delete form.initial[name];
  const boxes = problem.variables.map((name) => {
    const box = h("input", {
      type: "text",
      inputmode: "decimal",
      value: form.initial[name] === undefined ? "" : String(form.initial[name]),
      placeholder: "fitted",
      oninput: () => {
        const number = Number(box.value.replace(",", "."));
        const empty = box.value.trim() === "";
        box.setAttribute("aria-invalid", String(!empty && !Number.isFinite(number)));
        if (empty || !Number.isFinite(number)) delete form.initial[name];
        else form.initial[name] = number;
        changed();
      },
    });
    return field(`${name} at the start`, box);
  });
  return h("fieldset", {}, h("legend", {}, "Known start values"), h("div", { class: "fields narrow" }, boxes));
}

function functions(form, changed) {
  const boxes = FUNCTIONS.map((name) => {
    const box = h("input", {
      type: "checkbox",
      checked: !form.functions || form.functions.includes(name),
      onchange: () => {
        const allowed = FUNCTIONS.filter((_, i) => boxes[i].querySelector("input").checked);
        form.functions = allowed.length === FUNCTIONS.length ? null : allowed;
        changed();
      },
    });
    return h("label", { class: "tick" }, box, name);
  });
  return h("fieldset", {}, h("legend", {}, "Functions that may be in it"), h("div", { class: "ticks" }, boxes));
}

function lines(form, name, label, placeholder, changed, hint = "") {
  const box = h("textarea", {
    rows: "2",
    placeholder,
    spellcheck: "false",
    oninput: () => {
      form[name] = box.value.split("\n").map((line) => line.trim()).filter(Boolean);
      changed();
    },
  });
  box.value = (form[name] || []).join("\n");
  return field(label, box, hint);
}

function signs(form, problem, changed) {
  form.bounds = form.bounds || [];
  const box = h("div", {});
  const draw = () =>
    replace(
      box,
      form.bounds.map((bound, i) => {
        const term = h("input", { type: "text", value: bound.term, "aria-label": "Term", spellcheck: "false", oninput: () => ((bound.term = term.value), changed()) });
        const limits = h("input", { type: "text", value: bound.limits, list: "signs", "aria-label": "Sign, or limits such as -10:0", oninput: () => ((bound.limits = limits.value), changed()) });
        return h("div", { class: "row" }, h("span", {}, "The factor of"), term, h("span", {}, "is"), limits, button("Remove", () => (form.bounds.splice(i, 1), draw(), changed())));
      }),
      button("Add a sign or limits", () => (form.bounds.push({ term: problem.states[0], limits: "negative" }), draw(), changed())),
    );
  draw();
  return h(
    "fieldset",
    {},
    h("legend", {}, "Signs of factors"),
    h("datalist", { id: "signs" }, h("option", { value: "positive" }), h("option", { value: "negative" }), h("option", { value: "-10:0" })),
    box,
  );
}
