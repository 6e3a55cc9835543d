// All queries at a glance, for a wall: few of them at work, many as figures.

import { compact, fill, h, rate, renew } from "./dom.js";
import { liveCard } from "./live_card.js";
import { chart } from "./rates.js";
import { health } from "./sidebar.js";

/** As many queries are drawn at work, and as many of them are followed: browsers open six connections. */
const MOST_DRAWN = 6;
const MOST_FOLLOWED = 3;

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
  let live = new Map();
  let names = "";
  const leave = () => { live.forEach((one) => one.destroy()); live = new Map(); };
  const draw = () => {
    drawn.update();
    const { queries } = shared;
    const few = queries.length > 0 && queries.length <= MOST_DRAWN;
    const wanted = few ? queries.map(({ name }) => name).join(" ") : "";
    if (wanted !== names) {
      leave();
      names = wanted;
      fill(cards);
      cards.className = few ? `cards few n${queries.length}` : "cards";
      if (few) {
        queries.forEach(({ name }) => live.set(name, liveCard(shared, name, queries.length <= MOST_FOLLOWED)));
        fill(cards, [...live.values()].map(({ element }) => element));
      }
    }
    if (few) queries.forEach((query) => live.get(query.name).update(query));
    else renew(cards, queries.length ? queries.map((query) => card(shared, query)) : empty());
  };
  draw();
  return { tick: draw, destroy: () => { leave(); drawn.destroy(); } };
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

