// Requests to the server's API. A failure is an `ApiError` with the server's problem details.

const KEY = "spaseq.token";

export class ApiError extends Error {
  constructor(status, problem) {
    super(problem.detail || problem.title || `status ${status}`);
    this.status = status;
    this.problem = problem;
  }
}

export const token = {
  get: () => sessionStorage.getItem(KEY) || "",
  set: (value) => (value ? sessionStorage.setItem(KEY, value) : sessionStorage.removeItem(KEY)),
};

function headers(extra = {}) {
  return token.get() ? { Authorization: `Bearer ${token.get()}`, ...extra } : extra;
}

/** The response of a request that succeeded. */
async function send(method, path, { body, type, accept = "application/json", etag, signal } = {}) {
  const extra = { Accept: accept };
  if (type) extra["Content-Type"] = type;
  if (etag) extra["If-Match"] = etag;
  const response = await fetch(path, { method, body, signal, headers: headers(extra), redirect: "error" });
  if (response.ok) return response;
  throw await failure(response);
}

/** What a response that is no success says. */
async function failure(response) {
  const text = await response.text();
  let problem = { title: response.statusText, detail: text };
  try { problem = JSON.parse(text); } catch { /* a proxy's page, shown as it is */ }
  return new ApiError(response.status, problem);
}

const json = async (...request) => (await send(...request)).json();
const named = (name) => encodeURIComponent(name);

/** All entries of a list, page by page. */
async function all(path) {
  const found = [];
  for (let next = path; next;) {
    const page = await json("GET", next);
    found.push(...page.items);
    next = page.next;
  }
  return found;
}

/** A stream as the views want it: by its name, and with its lag behind the clock in seconds. */
function stream(one) {
  const dated = typeof one.watermark === "string";
  return { ...one, name: one.names[0] || one.iri,
    lag: dated ? (Date.now() - Date.parse(one.watermark)) / 1000 : null };
}

/** By name, with numbers in their order: q2 before q10. */
const inOrder = new Intl.Collator("en", { numeric: true }).compare;

export const queries = {
  list: async () => (await all("v1/queries")).sort((one, other) => inOrder(one.name, other.name)),
  async get(name) {
    const response = await send("GET", `v1/queries/${named(name)}`);
    return { ...(await response.json()), etag: response.headers.get("ETag") };
  },
  put: (name, definition, etag) => json("PUT", `v1/queries/${named(name)}`,
    { body: JSON.stringify(definition), type: "application/json", etag }),
  patch: (name, change) => json("PATCH", `v1/queries/${named(name)}`,
    { body: JSON.stringify(change), type: "application/json" }),
  remove: (name) => send("DELETE", `v1/queries/${named(name)}`),
  check: (text, signal) => json("POST", "v1/check",
    { body: text, type: "application/sparql-query", signal }),
  explain: (name) => json("GET", `v1/queries/${named(name)}/explain`),
  picture: async (name) => (await send("GET", `v1/queries/${named(name)}/explain`,
    { accept: "image/svg+xml" })).text(),
  plan: async (name) => (await send("GET", `v1/queries/${named(name)}/explain`,
    { accept: "text/plain" })).text(),
  groups: (name, place) => json("GET",
    `v1/queries/${named(name)}/groups?limit=100${place === undefined ? "" : `&place=${place}`}`),
  why: async (name) => (await send("GET", `v1/queries/${named(name)}/why`,
    { accept: "text/plain" })).text(),
  whyEvent: (name, event) => json("POST", `v1/queries/${named(name)}/why`,
    { body: JSON.stringify(event), type: "application/json" }),
};

export const streams = {
  list: async () => (await all("v1/streams")).map(stream),
  push: (iri, body, type) => json("POST", `v1/streams/${named(iri)}/events`, { body, type }),
  /** The triples of an event that a match names, as N-Triples. */
  event: async ({ stream: iri, graph, time }) => (await send("GET",
    `v1/streams/${named(iri)}/events?${new URLSearchParams({ graph, time })}`,
    { accept: "application/n-triples" })).text(),
  watermark: (iri, time) => json("POST", `v1/streams/${named(iri)}/watermark`,
    { body: JSON.stringify({ time }), type: "application/json" }),
};

export const graphs = {
  list: () => all("v1/kb"),
  get: async (iri) => {
    const response = await send("GET", `v1/kb/${named(iri)}`, { accept: "application/n-triples" });
    return { text: await response.text(), etag: response.headers.get("ETag") };
  },
  put: (iri, body, type, etag) => send("PUT", `v1/kb/${named(iri)}`, { body, type, etag }),
  remove: (iri) => send("DELETE", `v1/kb/${named(iri)}`),
};

export const server = {
  language: () => json("GET", "v1/language"),
  ready: async () => {
    const response = await fetch("readyz", { headers: headers({ Accept: "application/json" }) });
    return response.json();
  },
  checkpoint: () => json("POST", "v1/checkpoints"),
};

/**
 * Follow the matches of a query as server-sent events. EventSource cannot send a token, so this
 * reads the stream with fetch. It reconnects with Last-Event-ID, after a second, then longer, unless
 * the server refuses the token.
 */
export function follow(name, on) {
  const stop = new AbortController();
  let last = "";
  let wait = 1000;
  const listen = async () => {
    const extra = { Accept: "text/event-stream" };
    if (last) extra["Last-Event-ID"] = last;
    const response = await fetch(`v1/queries/${named(name)}/matches`,
      { headers: headers(extra), signal: stop.signal });
    if (response.status === 410) last = "";
    if (!response.ok) throw await failure(response);
    wait = 1000;
    on.state?.("open");
    for await (const message of messages(response.body)) {
      if (message.id) last = message.id;
      if (message.data) on[message.event]?.(JSON.parse(message.data), message.id);
    }
  };
  const loop = async () => {
    while (!stop.signal.aborted) {
      let why = null;
      try { await listen(); } catch (error) { why = error; }
      if (stop.signal.aborted) return;
      on.state?.("closed", why instanceof ApiError ? why.message : null);
      if ([401, 403].includes(why?.status)) return;
      await new Promise((resolve) => setTimeout(resolve, wait));
      wait = Math.min(wait * 2, 15000);
    }
  };
  loop();
  return () => stop.abort();
}

/** The messages of a `text/event-stream` body. */
async function* messages(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    buffer += value.replaceAll("\r\n", "\n");
    const parts = buffer.split("\n\n");
    buffer = parts.pop();
    for (const part of parts) {
      const message = { event: "message", id: "", data: "" };
      for (const line of part.split("\n")) {
        const [, field, text] = /^(\w+): ?(.*)$/.exec(line) || [];
        if (field === "data") message.data += (message.data && "\n") + text;
        else if (field) message[field] = text;
      }
      yield message;
    }
  }
}
