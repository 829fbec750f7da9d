// Calls of the server. Every failure is an Error whose message is one sentence for people.

export class Refused extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

let lost = () => {};
export function onLostSession(handler) {
  lost = handler;
}

async function call(method, path, body, type) {
  let answer;
  try {
    answer = await fetch(path, { method, body, headers: type ? { "Content-Type": type } : {} });
  } catch {
    throw new Refused("The server does not answer. If its terminal was closed, start it again: lgf app", 0);
  }
  const facts = await answer.json().catch(() => ({}));
  if (answer.ok) return facts;
  if (answer.status === 401) lost();
  throw new Refused(facts.error || `The server answered ${answer.status}.`, answer.status);
}

export const get = (path) => call("GET", path);
export const post = (path, facts = {}) => call("POST", path, JSON.stringify(facts), "application/json");
export const upload = (file) => call("POST", `/api/data?name=${encodeURIComponent(file.name)}`, file, "text/csv");
export const runPath = (run, rest = "") => `/api/runs/${encodeURIComponent(run)}${rest}`;
