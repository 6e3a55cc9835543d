// The console: one page over the server's API. This module owns what all views share: the lists
// that are read every second, the address, and the keys.

import { graphs, queries, server, streams, token } from "./api.js";
import { compact, decoded, duration, fill, h, rate, toast } from "./dom.js";
import { bindKeys } from "./keys.js";
import { knowledgeView } from "./knowledge_view.js";
import { overview } from "./overview.js";
import { closePanel } from "./panel.js";
import { newQuery, queryView } from "./query_view.js";
import { Rates, figure } from "./rates.js";
import { sidebar } from "./sidebar.js";
import { streamView } from "./stream_view.js";

const PERIOD = 1000;
const NO_CONNECTION = "no connection";
const NO_ACCESS = "not signed in";
const main = document.getElementById("main");

/**
 * What the views read. `queries` and `streams` are the server's lists, `rates` their history;
 * `trouble` says why they are not those of now.
 */
const shared = {
  queries: [], streams: [], graphs: [], ready: null, trouble: null, rates: new Rates(),
  refresh: () => tick(),
};
let view = null;

const VIEWS = [
  [/^#\/q\/([^/]+)(?:\/(\w+))?$/, (name, tab) => queryView(main, shared, decoded(name), tab)],
  [/^#\/new$/, () => newQuery(main, shared)],
  [/^#\/s\/([^/]+)$/, (name) => streamView(main, shared, decoded(name))],
  [/^#\/kb(?:\/(.+))?$/, (iri) => knowledgeView(main, shared, iri && decoded(iri))],
  [/^/, () => overview(main, shared)],
];

function open() {
  const address = location.hash;
  if (view?.stays?.(address)) return;
  view?.destroy?.();
  closePanel();
  fill(main);
  for (const [pattern, make] of VIEWS) {
    const match = pattern.exec(address);
    if (match) { view = make(...match.slice(1)); break; }
  }
  sidebar(shared);
  main.scrollTop = 0;
}

async function tick() {
  try {
    const [listed, streamed, ready] = await Promise.all([queries.list(), streams.list(), server.ready()]);
    Object.assign(shared, { queries: listed, streams: streamed, ready });
    const counts = { "": 0, events: 0 };
    for (const query of listed) { counts[`q ${query.name}`] = query.matches; counts[""] += query.matches; }
    for (const stream of streamed) { counts[`s ${stream.iri}`] = stream.events; counts.events += stream.events; }
    shared.rates.add(performance.timeOrigin / 1000 + performance.now() / 1000, counts);
    if (shared.trouble === NO_CONNECTION) toast("The server is back.");
    shared.trouble = null;
  } catch (error) {
    const refused = /:(token|role)$/.test(error.problem?.type);
    const trouble = refused ? NO_ACCESS : NO_CONNECTION;
    if (refused) askForToken(error.message);
    else if (shared.trouble !== trouble) toast(`The server does not answer: ${error.message}`, "error");
    shared.trouble = trouble;
  }
  vitals();
  sidebar(shared);
  view?.tick?.();
}

function vitals() {
  const bar = document.getElementById("vitals");
  if (shared.trouble) { fill(bar, h("span.state.bad", {}, shared.trouble)); return; }
  const lag = Math.max(...shared.streams.map((stream) => stream.lag ?? -Infinity));
  const ready = shared.ready?.ready !== false;
  fill(bar,
    h(`span.state.${ready ? "good" : "warn"}`, { title: (shared.ready?.not_ready || []).join("\n") }, ready ? "ready" : "not ready"),
    figure("events/s", rate(shared.rates.now("events"))),
    figure("matches/s", rate(shared.rates.now(""))),
    figure(shared.queries.length === 1 ? "query" : "queries", compact(shared.queries.length)),
    lag > 0 ? figure("behind", duration(lag), "The greatest lag of a stream's watermark behind the clock") : null);
}

/** Read everything and show the page of the address, anew after somebody signed in. */
async function begin() {
  await tick();
  graphs.list().then((listed) => { shared.graphs = listed; sidebar(shared); }, () => {});
  if (view && location.hash === "#/new") return; // a text may be half written
  view?.destroy?.();
  view = null;
  open();
}

let asking = false;
function askForToken(reason) {
  document.getElementById("token").hidden = false;
  if (asking) return;
  asking = true;
  const field = h("input", { type: "password", name: "token", autocomplete: "current-password", required: true, autofocus: true });
  const dialog = h("dialog.ask", { onclose: () => { asking = false; dialog.remove(); } },
    h("form", { method: "dialog", onsubmit: () => { token.set(field.value.trim()); begin(); } },
      h("h2", {}, "Access token"),
      h("p.soft", {}, reason || "The token is kept in this tab only."),
      h("label", {}, "Token", field),
      h("div.row", {}, h("button.primary", {}, "Sign in"),
        h("button", { type: "button", onclick: () => { token.set(""); location.reload(); } }, "Sign out"))));
  document.body.append(dialog);
  dialog.showModal();
}

const themes = ["auto", "light", "dark"];
function theme(next) {
  const held = localStorage.getItem("spaseq.theme") || "auto";
  const chosen = next ? themes[(themes.indexOf(held) + 1) % 3] : held;
  localStorage.setItem("spaseq.theme", chosen);
  document.documentElement.dataset.theme = chosen;
  document.getElementById("theme").textContent = { auto: "◐", light: "☀", dark: "☾" }[chosen];
  dispatchEvent(new Event("themechange"));
}

// Without tokens, a server needs nobody to sign in.
document.getElementById("token").hidden = !token.get();
document.getElementById("token").addEventListener("click", () => askForToken());
document.getElementById("theme").addEventListener("click", () => theme(true));
bindKeys({ shared, theme: () => theme(true) });
addEventListener("hashchange", open);
theme(false);
begin();
// Without access, every further request would be one more refusal in the server's log.
setInterval(() => document.hidden || shared.trouble === NO_ACCESS || tick(), PERIOD);
