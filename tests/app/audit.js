// Names of controls without a label, sizes of targets, contrast of texts, and overflow, of what is visible.
() => {
  const faults = [];
  const shown = (e) => e.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true }) && e.getClientRects().length > 0;
  const label = (e) => (e.getAttribute("aria-label") || [...(e.labels || [])].map((l) => l.textContent).join(" ") || e.textContent || "").trim();
  const words = (e) => `${e.tagName.toLowerCase()} "${label(e).slice(0, 40)}"`;
  for (const e of document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")) {
    if (!shown(e)) continue;
    if (!label(e)) faults.push(`no name: ${e.outerHTML.slice(0, 120)}`);
    const box = (e.closest("label") || e).getBoundingClientRect();
    const inText = e.tagName === "A" && !e.classList.contains("button") && e.parentElement.tagName === "P";
    if (!e.classList.contains("unseen") && !inText && (box.width < 24 || box.height < 24)) faults.push(`small target: ${words(e)} ${box.width}x${box.height}`);
  }
  const levels = [...document.querySelectorAll("h1, h2, h3")].filter(shown).map((e) => Number(e.tagName[1]));
  if (levels.filter((l) => l === 1).length !== 1) faults.push("not one h1");
  const parse = (text) => (text.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (e) => {
    for (let at = e; at; at = at.parentElement) {
      const c = parse(getComputedStyle(at).backgroundColor);
      if (c.length < 4 || c[3] > 0.99) return c;
    }
    return [255, 255, 255];
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const e = node.parentElement;
    if (!node.textContent.trim() || !e || !shown(e) || e.closest(".unseen, option, noscript, script, button:disabled")) continue;
    const [a, b] = [light(parse(getComputedStyle(e).color)), light(behind(e))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) faults.push(`contrast ${((a + 0.05) / (b + 0.05)).toFixed(2)}: ${node.textContent.trim().slice(0, 40)}`);
  }
  for (const plot of document.querySelectorAll(".plot")) {
    if (!plot.getAttribute("aria-label")) faults.push("a plot without a name");
    if (!plot.closest("figure").querySelector("details")) faults.push("a plot without a table");
  }
  const wide = document.documentElement.scrollWidth;
  if (wide > innerWidth) faults.push(`${wide} pixels wide in a window of ${innerWidth}`);
  return faults;
}
