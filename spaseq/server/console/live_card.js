// A query on the overview while there are few: its automaton at work, and its latest matches.

import { follow, queries } from "./api.js";
import { automaton } from "./automaton.js";
import { compact, fill, h, rate, renew, time } from "./dom.js";
import { term } from "./graph.js";
import { health } from "./sidebar.js";

const LATEST = 6;
const REDRAW = 400;

/** The card. Returns `{element, update(query), destroy()}`; with `follows`, it has matches. */
export function liveCard(shared, name, follows) {
  const address = `#/q/${encodeURIComponent(name)}`;
  const head = h("h2");
  const numbers = h("div.numbers");
  const picture = h("div.picture", { "aria-label": `The automaton of ${name}` });
  const latest = h("ol.latest", { "aria-label": `The latest matches of ${name}` });
  const element = h("section.card.query.working", {}, head, numbers, picture, follows ? latest : null);
  const held = [];
  let drawn = null;
  let etag = null;
  let asking = false;
  let waiting = null;
  const list = () => {
    waiting = null;
    fill(latest, held.map((match) => h("li", {},
      h("span.time", {}, time(match.end)),
      Object.entries(match.bindings || {}).slice(0, 4).map(([variable, value]) =>
        h("span", {}, h("span.soft", {}, `?${variable} `), term(value))))));
  };
  const stop = follows ? follow(name, {
    match(match) {
      held.unshift(match);
      held.length = Math.min(held.length, LATEST);
      drawn?.match();
      waiting ??= setTimeout(list, REDRAW);
    },
  }) : () => {};
  const draw = async () => {
    try {
      drawn = automaton(picture, await queries.picture(name), () => { location.hash = address; });
    } catch { drawn = null; fill(picture); } // a query that is paused or has failed has none
  };
  return {
    element,
    async update(query) {
      const [state, words] = health(query);
      renew(head, h(`span.dot.${state}`), h("a", { href: address }, name), h("span.soft", {}, words));
      renew(numbers,
        h("span", {}, h("b", {}, rate(shared.rates.now(`q ${name}`))), " matches/s"),
        h("span", {}, h("b", {}, compact(query.matches)), " in total"));
      const version = `${query.etag} ${query.status}`;
      if (version !== etag) { etag = version; await draw(); }
      if (asking || !drawn) return;
      asking = true;
      try { drawn.update((await queries.explain(name)).live?.places || []); } catch { /* the next second */ }
      asking = false;
    },
    destroy() { stop(); clearTimeout(waiting); },
  };
}
