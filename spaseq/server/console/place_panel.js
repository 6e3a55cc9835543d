// A place of the automaton: who waits there, since when, until when, by key; and what stops them.

import { queries } from "./api.js";
import { compact, fill, h, renew, time } from "./dom.js";
import { term } from "./graph.js";
import { openPanel } from "./panel.js";

const PERIOD = 2000;

export function showPlace(query, place, closed) {
  const list = h("div", {}, h("p.soft", {}, "Asking …"));
  const why = h("div");
  openPanel(`Place ${place} of ${query}`, list, h("h3", {}, "What stops them"), why);
  const draw = async () => {
    try {
      const found = await queries.groups(query, place);
      renew(list, found.items.length ? waiting(found) : h("p.soft", {}, "Nobody waits here."));
    } catch (error) { fill(list, h("p.bad", {}, error.message)); }
  };
  const timer = setInterval(draw, PERIOD);
  const panel = document.getElementById("panel");
  panel.addEventListener("closed", () => { clearInterval(timer); closed(); }, { once: true });
  draw();
  queries.why(query).then((text) => fill(why, h("pre", {}, text)), (error) => fill(why, h("p.bad", {}, error.message)));
}

function waiting(found) {
  const groups = found.items;
  const columns = [...new Set(groups.flatMap((group) => Object.keys(group.registers || {})))];
  return h("div", {},
    h("p", {}, h("b", {}, compact(found.total)), " groups of partial matches",
      found.total > groups.length ? `, the first ${groups.length}:` : ":"),
    h("div.matches", { role: "region", tabIndex: 0, "aria-label": "Groups" }, h("table", {},
      h("thead", {}, h("tr", {}, columns.map((column) => h("th", {}, `?${column}`)),
        h("th", {}, "since"), h("th", {}, "until"))),
      h("tbody", {}, groups.map((group) => h("tr", {},
        columns.map((column) => h("td", {}, term(group.registers?.[column]))),
        h("td.time", {}, time(group.earliest)), h("td.time", {}, time(group.until))))))));
}
