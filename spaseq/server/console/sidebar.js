// The list at the left: queries with their rates and health, streams, graphs of the knowledge base.

import { fill, h, rate, renew } from "./dom.js";
import { short } from "./graph.js";
import { sparkline } from "./rates.js";

let wanted = "";
const search = h("input.search", {
  type: "search", placeholder: "Find  /", "aria-label": "Find a query, stream or graph",
  oninput: () => { wanted = search.value.toLowerCase(); search.dispatchEvent(new Event("filtered", { bubbles: true })); },
});
const lists = h("div.lists");

/** The health of a query: a class for its dot, and a sentence. */
export function health(query) {
  if (query.failure) return ["bad", query.failure];
  if (query.paused) return ["off", "paused"];
  return query.matches > 0 ? ["good", "matching"] : ["idle", "no match yet"];
}

function entry(address, name, title, ...rest) {
  const current = location.hash === address || location.hash.startsWith(`${address}/`);
  return h("a.entry", { href: address, title, "aria-current": current ? "page" : null },
    h("span.name", {}, name), ...rest);
}

/** Draw the lists from what the console knows. */
export function sidebar(shared) {
  const side = document.getElementById("side");
  if (!side.contains(search)) {
    fill(side, search, lists);
    side.addEventListener("filtered", () => sidebar(shared));
  }
  const fits = (text) => text.toLowerCase().includes(wanted);
  const section = (title, count, action, entries) => h("section", {},
    h("h2", {}, title, h("span.count", {}, count), action), entries);
  renew(lists,
    section("Queries", shared.queries.length,
      h("a.add", { href: "#/new", title: "New query (n)" }, "+ new"),
      shared.queries.filter((query) => fits(query.name)).map((query) => {
        const [state, words] = health(query);
        const name = `q ${query.name}`;
        return entry(`#/q/${encodeURIComponent(query.name)}`, query.name, words,
          sparkline(shared.rates.series(name)),
          h("span.rate", {}, rate(shared.rates.now(name))),
          h(`span.dot.${state}`, { role: "img", "aria-label": words }));
      })),
    section("Streams", shared.streams.length, null,
      shared.streams.filter((stream) => fits(stream.name + stream.iri)).map((stream) => {
        const name = `s ${stream.iri}`;
        return entry(`#/s/${encodeURIComponent(stream.iri)}`, stream.name, stream.iri,
          sparkline(shared.rates.series(name)),
          h("span.rate", {}, rate(shared.rates.now(name))),
          h(`span.dot.${stream.holds_back ? "warn" : stream.idle ? "off" : "good"}`, {
            role: "img", "aria-label": stream.holds_back ? "holds the others back" : stream.idle ? "idle" : "active" }));
      })),
    section("Knowledge base", shared.graphs.length, h("a.add", { href: "#/kb" }, "open"),
      shared.graphs.filter((graph) => fits(graph.iri)).map((graph) =>
        entry(`#/kb/${encodeURIComponent(graph.iri)}`, short(graph.iri), graph.iri,
          h("span.rate", {}, graph.triples ?? "")))));
}
