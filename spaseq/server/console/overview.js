// All queries at a glance, for a wall.

import { compact, fill, h, rate, renew } from "./dom.js";
import { chart } from "./rates.js";
import { health } from "./sidebar.js";

export function overview(main, shared) {
  const cards = h("div.cards");
  const plot = h("div.plot");
  fill(main,
    h("h1", {}, "Overview"),
    h("section.card", {}, h("h2", {}, "All streams and queries"), plot),
    cards);
  const drawn = chart(plot, shared.rates, [
    { name: "events", label: "events", colour: "--soft" },
    { name: "", label: "matches", colour: "--accent" },
  ]);
  const draw = () => {
    drawn.update();
    renew(cards, shared.queries.length ? shared.queries.map((query) => card(shared, query)) : empty());
  };
  draw();
  return { tick: draw, destroy: () => drawn.destroy() };
}

function card(shared, query) {
  const [state, words] = health(query);
  return h("a.card.query", { href: `#/q/${encodeURIComponent(query.name)}` },
    h("h2", {}, h(`span.dot.${state}`), query.name, h("span.soft", {}, words)),
    h("p.sequence", {}, sequence(query.text)),
    h("div.numbers", {},
      h("span", {}, h("b", {}, rate(shared.rates.now(`q ${query.name}`))), " matches/s"),
      h("span", {}, h("b", {}, compact(query.matches)), " in total")));
}

/** The sequence expression of a query: from SEQ to the parenthesis that closes it. */
function sequence(text) {
  const start = text.search(/\bSEQ\s*\(/i);
  if (start < 0) return "";
  let depth = 0;
  for (let end = text.indexOf("(", start); end < text.length; end += 1) {
    depth += { "(": 1, ")": -1 }[text[end]] || 0;
    if (depth === 0) return text.slice(start, end + 1).replace(/\s+/g, " ");
  }
  return "";
}

function empty() {
  return h("section.card.empty", {},
    h("h2", {}, "No query yet"),
    h("p", {}, "A query is a text in SPAseq. Register one and its matches appear here, each the moment it is certain."),
    h("a.button.primary", { href: "#/new" }, "New query"));
}

