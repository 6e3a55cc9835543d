// Why a query has no match: how far its partial matches came; and what it makes of one event.

import { queries } from "./api.js";
import { fill, h } from "./dom.js";
import { written } from "./graph.js";

export function whyView(part, shared, name) {
  const text = h("pre.plan");
  const graph = h("textarea", { rows: 8, required: true, spellcheck: false, "aria-label": "The triples of an event",
    placeholder: "<http://example.org/s1> <http://example.org/celsius> 71 ." });
  const at = h("input", { type: "text", "aria-label": "Time of the event", placeholder: "time: now, or 2026-01-01T00:00:00Z" });
  const stream = h("select", { "aria-label": "Stream" },
    shared.streams.map((one) => h("option", { value: one.iri }, one.name)));
  const answer = h("div");
  const ask = async (event) => {
    event.preventDefault();
    fill(answer, h("p.soft", {}, "Asking …"));
    fill(answer, await verdict(name, graph.value, { time: at.value || now(shared, stream.value), stream: stream.value }));
  };
  fill(part,
    h("section.card", {}, h("h2", {}, "How far partial matches came"), text),
    h("section.card", {}, h("h2", {}, "What would this event do?", h("span.soft", {}, "the event changes nothing")),
      h("form.stacked", { onsubmit: ask }, graph, h("div.row", {}, stream, at, h("button.primary", {}, "Ask"))), answer));
  const load = async () => {
    try { text.textContent = await queries.why(name); } catch (error) { text.textContent = error.message; }
  };
  return { shown: load };
}

const MOST = 5;

/** A solution: each variable with its term, which the API writes as in N-Triples. */
function solution(row) {
  return h("dl.facts", {}, Object.entries(row).map(([variable, text]) => [h("dt", {}, `?${variable}`), h("dd", {}, written(text))]));
}

/** What a place that waits for the pattern does with the event. */
function place({ place: name, waiting, fitting, because }) {
  return h("p.soft", {}, `${name}: ${waiting ? `fits ${fitting} of ${waiting} that wait` : "nothing waits"}`,
    because.map((reason) => [h("br"), reason]));
}

/** A time as the API takes it: a number of seconds, or a date. */
const moment = (text) => (/^-?[\d.]+$/.test(text) ? Number(text) : text);

/** The time of a stream: how far it has come, or that of the clock. */
function now(shared, iri) {
  return shared.streams.find((one) => one.iri === iri)?.watermark ?? new Date().toISOString();
}

/** What the patterns of a query find in one event. */
export async function verdict(name, graph, { time, stream }) {
  try {
    const answer = await queries.whyEvent(name, { graph, at: moment(time), stream });
    return h("div.verdict", {}, answer.patterns.map((one) => h(`section.${one.matches ? "yes" : "no"}`, {},
      h("h4", {}, one.gpm, h("span.soft", {}, one.matches ? " matches" : " does not match")),
      (one.solutions || []).slice(0, MOST).map(solution),
      one.because.map((reason) => h("p", {}, reason)),
      (one.places || []).map(place))));
  } catch (error) { return h("p.bad", {}, error.message); }
}
