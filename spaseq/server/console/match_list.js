// The matches of a query as they come, newest first, with the events each is made of.

import { compact, fill, h, time } from "./dom.js";
import { term } from "./graph.js";
import { showEvent } from "./event_panel.js";

const KEPT = 200;
const REDRAW = 250;

/** The events of a match, those in a row for one graph pattern together. */
function steps(events) {
  const found = [];
  events.forEach(({ gpm }, number) => {
    const last = found.at(-1);
    if (last?.gpm === gpm) last.count += 1; else found.push({ gpm, first: number, count: 1 });
  });
  return found;
}

/** A list in `parent`. Returns `{add(match, id), progress(message), state(word)}`. */
export function matchList(parent, name) {
  const held = [];
  let count = 0;
  let paused = false;
  let waiting = null;
  const state = h("span.soft", { role: "status" }, "connecting …");
  const upto = h("span.soft");
  const hold = h("button.quiet", { onclick: () => { paused = !paused; hold.textContent = paused ? "Go on" : "Hold"; draw(); } }, "Hold");
  const table = h("div.matches", { tabIndex: 0, "aria-label": "Matches" });
  fill(parent, h("h2", {}, "Matches", state, upto, hold), table);
  const draw = () => {
    waiting = null;
    if (paused) return;
    fill(table, held.length ? rows() : h("p.soft.none", {}, "No match since this page was opened."));
    state.textContent = `${compact(count)} since this page was opened`;
  };
  const rows = () => {
    const columns = [...new Set(held.slice(0, 50).flatMap(({ match }) => Object.keys(match.bindings || {})))];
    return h("table", {},
      h("thead", {}, h("tr", {}, h("th", {}, "end"), columns.map((column) => h("th", {}, `?${column}`)), h("th", {}, "events"))),
      h("tbody", {}, held.map(({ match, fresh }) => h(`tr${fresh ? ".fresh" : ""}`, {},
        h("td.time", { title: `from ${time(match.start)}` }, time(match.end)),
        columns.map((column) => h("td", {}, term(match.bindings?.[column]))),
        h("td", {}, h("div.events", {}, steps(match.events || []).map(({ gpm, first, count }) =>
          h("button.event", { title: `from ${time(match.events[first].time)}`, onclick: () => showEvent(name, match, first) },
            count > 1 ? `${gpm} × ${count}` : gpm)))),
        match.graph ? h("td", {}, h("pre", {}, match.graph)) : null))));
  };
  const later = () => { waiting ??= setTimeout(draw, REDRAW); };
  draw();
  return {
    add(match, id) {
      count += 1;
      held.forEach((one) => { one.fresh = false; });
      held.unshift({ match, id, fresh: true });
      held.length = Math.min(held.length, KEPT);
      later();
    },
    progress({ watermark }) { upto.textContent = watermark ? `complete up to ${time(watermark)}` : ""; },
    state(word) { if (word === "closed") state.textContent = "reconnecting …"; else later(); },
  };
}
