// The frame of the page: session, address, steps, messages. A screen is a function that fills <main> and returns how to
// leave it.

import { get, onLostSession, post } from "./api.js";
import { button, h, replace } from "./dom.js";
import { listen, runs, start } from "./news.js";
import columns from "./screens/columns.js";
import compare from "./screens/compare.js";
import data from "./screens/data.js";
import run from "./screens/run.js";
import tryout from "./screens/tryout.js";

const main = document.getElementById("main");
const banner = document.getElementById("banner");
const live = document.getElementById("live");
let leave = () => {};
let turn = 0;

const SCREENS = [
  [/^\/?$/, data, 0],
  [/^\/data\/([0-9a-f]+)$/, columns, 1],
  [/^\/run\/([^/]+)$/, run, 2],
  [/^\/run\/([^/]+)\/try(?:\/(\d+))?$/, tryout, 4],
  [/^\/compare\/(.+)$/, compare, 3],
];

export function say(sentence) {
  live.textContent = sentence;
}

export function complain(sentence, action) {
  replace(banner, sentence ? h("p", { class: "banner" }, sentence, action || null) : null);
}

export function go(address) {
  if (location.hash === `#${address}`) show();
  else location.hash = address;
}

// `at` is the number of the step; `links` are the addresses of the steps that can be gone to.
export function steps(at, links = {}) {
  const names = ["Data", "Columns", "Search", "Result", "Try it"];
  replace(
    document.getElementById("steps"),
    names.map((name, i) => {
      const address = i === 0 ? "/" : links[i];
      const current = i === at ? "step" : undefined;
      const inside = address && i !== at ? h("a", { href: `#${address}` }, name) : h("span", { "aria-current": current }, name);
      return h("li", {}, inside);
    }),
  );
}

async function show() {
  const address = decodeURI(location.hash.replace(/^#/, "")) || "/";
  const found = SCREENS.map(([pattern, screen, step]) => [pattern.exec(address), screen, step]).find(([match]) => match);
  turn += 1;
  const mine = turn;
  leave();
  leave = () => {};
  complain("");
  replace(main, h("p", { class: "quiet" }, "One moment ..."));
  if (!found) return replace(main, h("h1", {}, "There is nothing at this address."), h("p", {}, h("a", { href: "#/" }, "To the start")));
  const [match, screen, step] = found;
  steps(step);
  const page = {
    main,
    say,
    complain,
    go,
    steps,
    current: () => mine === turn,
    title: (text) => (document.title = `${text} · Latent Grammar Flow`),
  };
  try {
    const left = await screen(page, ...match.slice(1).map((part) => part && decodeURIComponent(part)));
    if (mine === turn) leave = left || (() => {});
    else left?.();
  } catch (error) {
    if (mine !== turn) return undefined;
    replace(main, h("h1", {}, "This cannot be shown."), h("p", {}, error.message), h("p", {}, h("a", { href: "#/" }, "To the start")));
  }
  main.focus({ preventScroll: true });
  window.scrollTo(0, 0);
  return undefined;
}

function withoutSession(sentence) {
  turn += 1;
  leave();
  leave = () => {};
  steps(0);
  const ask = button("Show a new address in the terminal", async () => {
    await post("/api/knock").catch((error) => complain(error.message));
    ask.textContent = "The terminal shows it now; open it from there";
  });
  replace(
    main,
    h("h1", {}, "This page is not connected"),
    h("p", {}, sentence),
    h("p", {}, "The server lets in only who has the address from its terminal, so that no other page and no other user of this computer can read your data."),
    ask,
  );
}

async function begin() {
  const token = /^#token=(.+)$/.exec(location.hash);
  onLostSession(() => withoutSession("The server was started anew, or this browser was never let in."));
  if (token) {
    history.replaceState(null, "", "#/");
    try {
      await post("/api/login", { token: token[1] });
    } catch (error) {
      if (error.status !== 403) return complain(error.message);
      // An address that was used before is no harm while this browser has its session.
    }
  }
  try {
    for (const row of await get("/api/runs")) runs.set(row.run, row);
  } catch (error) {
    if (error.status !== 401) complain(error.message);
    return undefined;
  }
  start();
  let away = false;
  listen((change) => {
    if (change.kind === "lost") {
      away = true;
      complain("The server does not answer at the moment. A search goes on without it; this page waits.");
    } else if (change.kind === "open" && away) {
      away = false;
      complain("");
      show();
    }
  });
  window.addEventListener("hashchange", show);
  show();
  return undefined;
}

document.getElementById("skip").addEventListener("click", () => main.focus());
begin();
