// Elements made from data. Text is always a text node; nothing is parsed as markup.

export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && typeof value !== "string") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  return fill(element, children);
}

export function fill(element, children) {
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export function replace(element, ...children) {
  element.textContent = "";
  return fill(element, children);
}

let number = 0;

// A form control with its label; `hint` is read after the label.
export function field(label, control, hint = "") {
  control.id = control.id || `field-${(number += 1)}`;
  const parts = [h("label", { for: control.id }, label), control];
  if (hint) {
    control.setAttribute("aria-describedby", `${control.id}-hint`);
    parts.push(h("small", { id: `${control.id}-hint`, class: "quiet" }, hint));
  }
  return h("div", { class: "field" }, parts);
}

export function select(options, value, onchange, properties = {}) {
  const element = h("select", { ...properties, onchange: () => onchange(element.value) });
  for (const [key, label] of options) element.append(h("option", { value: key }, label));
  element.value = value;
  return element;
}

export function button(label, onclick, properties = {}) {
  return h("button", { type: "button", onclick, ...properties }, label);
}

export function table(caption, heads, rows, properties = {}) {
  return h(
    "table",
    properties,
    h("caption", { class: properties.captioned ? "" : "unseen" }, caption),
    h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head)))),
    h("tbody", {}, rows),
  );
}

export function seconds(value) {
  const whole = Math.max(Math.round(value), 0);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}

export function percent(share) {
  if (share === null || share === undefined || !Number.isFinite(share)) return "";
  const value = 100 * share;
  return `${value >= 100 ? Math.round(value) : Number(value.toPrecision(3))} %`;
}

export function short(value) {
  if (value === null || value === undefined) return "";
  return figure(Number(value.toPrecision(5)));
}

// A number as text; small ones with an exponent, which take less room than their zeros.
export function figure(value) {
  return value !== 0 && Math.abs(value) < 1e-3 ? value.toExponential() : String(value);
}

export async function copy(text, control) {
  const label = control.textContent;
  try {
    await navigator.clipboard.writeText(text);
    control.textContent = "Copied";
  } catch {
    control.textContent = "Not allowed here; download it instead";
  }
  setTimeout(() => (control.textContent = label), 1500);
}
