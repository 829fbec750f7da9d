// What the server says about the runs, as it happens. Only a page that is looked at holds a connection: a browser allows
// six to one server, and nothing is lost, because each connection starts with the state of all runs.

import { get } from "./api.js";

export const runs = new Map();
const listeners = new Set();
let source = null;
let retry = 0;

export function listen(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function tell(change) {
  for (const listener of [...listeners]) listener(change);
}

function open() {
  if (source || document.hidden) return;
  source = new EventSource("/api/events");
  source.addEventListener("snapshot", (event) => {
    runs.clear();
    for (const row of JSON.parse(event.data)) runs.set(row.run, row);
    tell({ kind: "snapshot" });
  });
  source.addEventListener("progress", (event) => {
    const row = JSON.parse(event.data);
    runs.set(row.run, row);
    tell({ kind: "progress", row });
  });
  source.addEventListener("gone", (event) => {
    const { run } = JSON.parse(event.data);
    runs.delete(run);
    tell({ kind: "gone", run });
  });
  source.onopen = () => tell({ kind: "open" });
  source.onerror = () => {
    const closed = source.readyState === EventSource.CLOSED;
    tell({ kind: "lost" });
    if (closed) {
      close();
      clearTimeout(retry);
      retry = setTimeout(() => get("/api/runs").then(open, open), 2000);
    }
  };
}

function close() {
  source?.close();
  source = null;
}

export function start() {
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  window.addEventListener("pagehide", close);
  open();
}
