// One run: the search while it goes on, the result when it is there.

import { get, runPath } from "../api.js";
import { listen } from "../news.js";
import result from "./result.js";
import search from "./search.js";

export default async function run(page, name) {
  page.title(name);
  let leave = () => {};
  let shown = null;
  let loading = false;

  async function load() {
    loading = true;
    const facts = await get(runPath(name)).finally(() => (loading = false));
    if (!page.current()) return;
    leave();
    shown = facts.view ? "result" : "search";
    const address = encodeURIComponent(name);
    page.steps(shown === "result" ? 3 : 2, shown === "result" ? { 4: `/run/${address}/try` } : {});
    leave = shown === "result" ? result(page, facts, load) : search(page, facts, load);
  }

  await load();
  const stop = listen(({ kind, row }) => {
    if (kind !== "progress" || row.run !== name || loading) return;
    if (shown === "search" && !row.live && row.state !== "waiting") load();
    else if (shown === "result" && (row.live || row.state === "waiting")) load();
    else leave.update?.(row);
  });
  return () => {
    stop();
    leave();
  };
}
