// A stream: its watermark, lateness, who holds time back; and a form that pushes events.

import { streams } from "./api.js";
import { compact, duration, fill, h, time, toast } from "./dom.js";
import { short } from "./graph.js";
import { chart } from "./rates.js";

const TYPES = [["application/trig", "TriG"], ["application/n-quads", "N-Quads"], ["application/ld+json", "JSON-LD"]];

export function streamView(main, shared, iri) {
  const title = h("h1", {}, short(iri));
  const facts = h("dl.facts");
  const plot = h("div.plot");
  const body = h("textarea", { rows: 10, required: true, spellcheck: false, "aria-label": "Events",
    placeholder: 'PREFIX : <http://example.org/>\n:e1 <http://www.w3.org/ns/prov#generatedAtTime> "2026-01-01T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .\n:e1 { :s1 :celsius 71 }' });
  const type = h("select", { "aria-label": "Syntax" }, TYPES.map(([value, label]) => h("option", { value }, label)));
  const answer = h("p.soft", { role: "status" });
  const push = async (event) => {
    event.preventDefault();
    try {
      const taken = await streams.push(iri, body.value, type.value);
      answer.textContent = `${taken.accepted} accepted, ${taken.late} late, ${taken.rejected} rejected`;
      shared.refresh();
    } catch (error) { answer.textContent = error.message; }
  };
  const instant = h("input", { required: true, "aria-label": "Time", placeholder: "2026-01-01T00:00:00Z" });
  const advance = async (event) => {
    event.preventDefault();
    try { await streams.watermark(iri, instant.value); toast(`The stream has no event before ${instant.value}.`); shared.refresh(); } catch (error) { toast(error.message, "error"); }
  };
  fill(main,
    h("div.heading", {}, title, h("span.soft", {}, iri)),
    h("section.card", {}, h("h2", {}, "Time"), facts),
    h("section.card", {}, h("h2", {}, "Events over time"), plot),
    h("section.card", {}, h("h2", {}, "Push events"),
      h("form.stacked", { onsubmit: push }, body, h("div.row", {}, type, h("button.primary", {}, "Push"), answer))),
    h("section.card", {}, h("h2", {}, "Watermark", h("span.soft", {}, "a promise that nothing earlier comes")),
      h("form.row", { onsubmit: advance }, instant, h("button", {}, "Advance"))));
  const rates = chart(plot, shared.rates, [{ name: `s ${iri}`, label: "events", colour: "--accent" }]);
  const tick = () => {
    const stream = shared.streams.find((one) => one.iri === iri);
    rates.update();
    if (!stream) { fill(facts, h("dt", {}, "this stream does not exist")); return; }
    title.textContent = stream.name;
    const lines = [
      ["read by", stream.queries.join(", ")],
      ["watermark", time(stream.watermark)], [stream.lag < 0 ? "ahead of the clock" : "behind the clock", duration(stream.lag === null ? null : Math.abs(stream.lag))],
      ["lateness allowed", duration(stream.lateness)], ["events", compact(stream.events)],
      ["late", compact(stream.late)], ["rejected", compact(stream.rejected)],
      ["waiting to be matched", compact(stream.waiting)], ["silent for", duration(stream.silent) + (stream.idle ? ", idle" : "")], ["holds the others back", stream.holds_back ? "yes" : "no"],
      ...stream.sources.map((source) => ["fed from", `${source.places.join(", ")} (${source.problem || source.status})`]),
    ];
    fill(facts, lines.map(([label, value]) => [h("dt", {}, label), h("dd", {}, value)]));
  };
  tick();
  return { tick, destroy: () => rates.destroy() };
}
