// The events of a match, one at a time: its graph for reading, and what the query made of it.

import { streams } from "./api.js";
import { fill, h, time } from "./dom.js";
import { graph, term } from "./graph.js";
import { openPanel } from "./panel.js";
import { verdict } from "./why_view.js";

/** Show event `number` of a match of `query`, with buttons for the others. */
export function showEvent(query, match, number) {
  const body = openPanel(`A match of ${query}`);
  const buttons = match.events.map((event, one) => h("button.event", { title: time(event.time), onclick: () => show(one) }, event.gpm));
  const content = h("div");
  fill(body, h("p.soft", {}, `${time(match.start)} to ${time(match.end)}`), h("div.events", {}, buttons), content);
  const show = async (one) => {
    const event = match.events[one];
    buttons.forEach((button, other) => button.toggleAttribute("aria-current", other === one));
    const triples = h("div", {}, h("p.soft", {}, "Reading …"));
    fill(content,
      h("h3", {}, event.gpm),
      h("dl.facts", {},
        h("dt", {}, "time"), h("dd", {}, time(event.time)),
        h("dt", {}, "stream"), h("dd", {}, term({ type: "uri", value: event.stream })),
        event.graph ? [h("dt", {}, "graph"), h("dd", {}, term({ type: "uri", value: event.graph }))] : []),
      h("h3", {}, "What the step saw"),
      h("dl.facts", {}, Object.entries(event.bindings || {}).map(([name, value]) => [h("dt", {}, `?${name}`), h("dd", {}, term(value))])),
      h("h3", {}, "Its triples"), triples);
    try {
      const text = await streams.event(event);
      fill(triples, graph(text), h("h3", {}, "What the query finds in it"), await verdict(query, text, event));
    } catch (error) {
      fill(triples, h("p.soft", {}, [404, 410].includes(error.status) ? "The server no longer holds this event." : error.message));
    }
  };
  show(number);
}
