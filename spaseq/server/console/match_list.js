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

/** A list in `parent`. Returns `{add(match, id), progress(message), state(word, why)}`. */
export function matchList(parent, name) {
  const held = [];
  let count = 0;
  let paused = false;
  let waiting = null;
  const state = h("span.soft", { role: "status" }, "connecting …");
  const upto = h("span.soft");
  const hold = h("button.quiet", { onclick: () => { paused = !paused; hold.textContent = paused ? "Go on" : "Hold"; draw(); } }, "Hold");
  const table = h("div.matches", { role: "region", tabIndex: 0, "aria-label": "Matches" });
  const body = h("tbody");
  let columns = null;
  fill(parent, h("h2", {}, "Matches", state, upto, hold), table);
  const draw = () => {
    waiting = null;
    if (paused) return;
    if (held.length) rows(); else fill(table, h("p.soft.none", {}, "No match since this page was opened."));
    state.textContent = `${compact(count)} since this page was opened`;
  };
  // Rows that are shown stay as they are, so that a button keeps the focus while matches come.
  const rows = () => {
    const found = [...new Set(held.slice(0, 50).flatMap(({ match }) => Object.keys(match.bindings || {})))];
    if (columns?.join() !== found.join()) {
      columns = found;
      fill(body);
      held.forEach((one) => { one.row = null; });
      fill(table, h("table", {},
        h("thead", {}, h("tr", {}, h("th", {}, "end"), columns.map((column) => h("th", {}, `?${column}`)), h("th", {}, "events"))),
        body));
    }
    const added = held.filter(({ row }) => !row);
    added.forEach((one) => { one.row = drawn(one.match); });
    body.prepend(...added.map(({ row }) => row));
    while (body.rows.length > held.length) body.lastChild.remove();
  };
  const drawn = (match) => h("tr.fresh", {},
    h("td.time", { title: `from ${time(match.start)}` }, time(match.end)),
    columns.map((column) => h("td", {}, term(match.bindings?.[column]))),
    h("td", {}, h("div.events", {}, steps(match.events || []).map(({ gpm, first, count: several }) =>
      h("button.event", { title: `from ${time(match.events[first].time)}`, onclick: () => showEvent(name, match, first) },
        several > 1 ? `${gpm} × ${several}` : gpm)))),
    match.graph ? h("td", {}, h("pre", {}, match.graph)) : null);
  const later = () => { waiting ??= setTimeout(draw, REDRAW); };
  draw();
  return {
    add(match, id) {
      count += 1;
      held.unshift({ match, id, row: null });
      held.length = Math.min(held.length, KEPT);
      later();
    },
    progress({ watermark }) { upto.textContent = watermark ? `complete up to ${time(watermark)}` : ""; },
    state(word, why) { if (word === "closed") state.textContent = why || "reconnecting …"; else later(); },
  };
}
