// One query: what happens in it, its text, why it has no match, and its plan.

import { follow, queries } from "./api.js";
import { automaton } from "./automaton.js";
import { compact, confirmed, decoded, fill, h, toast } from "./dom.js";
import { editor } from "./editor.js";
import { language } from "./language.js";
import { matchList } from "./match_list.js";
import { showPlace } from "./place_panel.js";
import { chart } from "./rates.js";
import { health } from "./sidebar.js";
import { whyView } from "./why_view.js";

const TABS = [["live", "Live"], ["text", "Text"], ["why", "Why"], ["plan", "Plan"]];

const START = `PREFIX : <http://example.org/>

SELECT ?sensor ?before ?after
FROM STREAM readings <http://example.org/readings>
WITHIN 10 MINUTES
PARTITION BY ?sensor
WHERE {
  SEQ(Cold ; Hot)

  DEFINE GPM Cold ON readings { ?sensor :celsius ?before FILTER(?before < 30) }
  DEFINE GPM Hot ON readings { ?sensor :celsius ?after FILTER(?after > 60) }
}
`;

export function queryView(main, shared, name, first = "live") {
  const parts = new Map(TABS.map(([id]) => [id, h("div.tabpanel", {
    role: "tabpanel", id: `tab-${id}`, tabIndex: 0, "aria-labelledby": `to-${id}`,
  })]));
  const tabs = TABS.map(([id, label]) => h("a", {
    role: "tab", id: `to-${id}`, href: `#/q/${encodeURIComponent(name)}/${id}`, "aria-controls": `tab-${id}`, dataset: { id },
  }, label));
  const status = h("span.soft");
  const pause = h("button", { onclick: async () => {
    const query = shared.queries.find((one) => one.name === name);
    await attempt(() => queries.patch(name, { paused: !query?.paused }));
    shared.refresh();
  } }, "Pause");
  const remove = h("button.danger", { onclick: async () => {
    if (!await confirmed(`Remove ${name}? Its partial matches are lost.`, "Remove")) return;
    if (await attempt(() => queries.remove(name))) { location.hash = "#/"; shared.refresh(); }
  } }, "Remove");
  fill(main,
    h("div.heading", {}, h("h1", {}, name), status, h("div.row", {}, pause, remove)),
    h("div.tabs", { role: "tablist", "aria-label": `Parts of ${name}`, onkeydown: (event) => turn(event, tabs) }, tabs),
    [...parts.values()]);

  const made = new Map();
  const makers = { live: liveTab, text: textTab, why: whyView, plan: planTab };
  let shown = null;
  const show = (id) => {
    shown = parts.has(id) ? id : "live";
    tabs.forEach((tab) => {
      tab.setAttribute("aria-selected", tab.dataset.id === shown);
      tab.tabIndex = tab.dataset.id === shown ? 0 : -1;
    });
    parts.forEach((part, other) => { part.hidden = other !== shown; });
    if (!made.has(shown)) made.set(shown, makers[shown](parts.get(shown), shared, name));
    made.get(shown).shown?.();
  };
  show(first);
  const tick = () => {
    const query = shared.queries.find((one) => one.name === name);
    status.textContent = query ? health(query)[1] : shared.trouble ?? "there is no such query";
    pause.disabled = remove.disabled = !query;
    pause.textContent = query?.paused ? "Resume" : "Pause";
    made.get(shown)?.tick?.(query);
  };
  tick();
  return {
    tick,
    stays(address) {
      const match = /^#\/q\/([^/]+)(?:\/(\w+))?$/.exec(address);
      if (!match || decoded(match[1]) !== name) return false;
      show(match[2] || "live");
      return true;
    },
    destroy: () => made.forEach((part) => part.destroy?.()),
  };
}

/** Keys in a row of tabs: arrows, Home and End go to another one, the space bar opens it. */
function turn(event, tabs) {
  const at = tabs.indexOf(event.target);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: -1, " ": at }[event.key];
  if (at < 0 || to === undefined) return;
  event.preventDefault();
  const tab = tabs.at(to % tabs.length);
  tab.focus();
  tab.click();
}

/** Run a request; a failure is a message. Resolves to whether it went well. */
async function attempt(request) {
  try { await request(); return true; } catch (error) { toast(error.message, "error"); return false; }
}

// ------------------------------------------------------------------ live

function liveTab(part, shared, name) {
  const picture = h("div.picture", { "aria-label": "The automaton" }, h("p.soft", {}, "Drawing …"));
  const plot = h("div.plot");
  const list = h("div");
  const numbers = h("div.numbers");
  fill(part,
    h("section.card", {}, h("h2", {}, "Automaton", h("span.soft", {}, "click a place to see who waits there")), picture),
    h("section.card", {}, h("h2", {}, "Matches over time", numbers), plot),
    h("section.card", {}, list));
  const rates = chart(plot, shared.rates, [{ name: `q ${name}`, label: "matches", colour: "--accent" }]);
  let drawn = null;
  let etag = null;
  const draw = async () => {
    try {
      drawn = automaton(picture, await queries.picture(name), (place) => {
        showPlace(name, place, () => drawn.choose(null));
        drawn.choose(place);
      });
    } catch (error) { fill(picture, h("p.bad", {}, error.message)); }
  };
  const matches = matchList(list, name);
  const stop = follow(name, {
    match: (match, id) => { matches.add(match, id); drawn?.match(); },
    progress: (progress) => matches.progress(progress),
    problem: (says) => toast(Object.values(says).join("; "), "error"),
    state: (state, why) => matches.state(state, why),
  });
  let asking = false;
  const tick = async (query) => {
    rates.update();
    if (!query) {
      if (!drawn && !shared.trouble) fill(picture, h("p.soft", {}, "There is no such query."));
      return;
    }
    fill(numbers, h("span", {}, h("b", {}, compact(query.matches)), " in total"));
    if (query.etag !== etag) { etag = query.etag; await draw(); }
    if (asking || !drawn) return;
    asking = true;
    try { drawn.update((await queries.explain(name)).live?.places || []); } catch { /* the next second */ }
    asking = false;
  };
  return { tick, destroy() { stop(); rates.destroy(); } };
}

// ------------------------------------------------------------------ text

function textTab(part, shared, name) {
  const form = textForm(part, shared, { name, text: "", verb: "Replace", policies: true });
  const load = async () => {
    try { form.load(await queries.get(name)); } catch (error) { toast(error.message, "error"); }
  };
  load();
  // Who goes through the tabs by keys stays there.
  return { shown: () => document.activeElement?.getAttribute("role") === "tab" || form.focus(), destroy: form.destroy };
}

/** A page to write a query and register it. */
export function newQuery(main, shared) {
  fill(main, h("h1", {}, "New query"));
  const part = h("div.tabpanel");
  main.append(part);
  const form = textForm(part, shared, { name: "", text: START, verb: "Register", policies: false });
  form.focus();
  return { destroy: form.destroy };
}

function textForm(part, shared, { name, text, verb, policies }) {
  const box = h("div.editor");
  const problems = h("ol.problems", { "aria-live": "polite" });
  const title = h("input", { name: "name", placeholder: "a name, as in hot-sensors", value: name, readOnly: Boolean(name),
    required: true, pattern: "[\\w.~\\-]+", "aria-label": "Name of the query" });
  const policy = h("select", { "aria-label": "What happens to partial matches" },
    [["keep", "keep partial matches where they fit"], ["drain", "let the old version finish its own"], ["fresh", "start without partial matches"]]
      .map(([value, label]) => h("option", { value }, label)));
  const button = h("button.primary", { title: "Ctrl+Enter" }, verb);
  let etag = null;
  let others = {}; // what a replacement keeps
  let form = null;
  let writer = null;
  const show = (diagnostics) => fill(problems, diagnostics.map((one) => h(`li.${one.severity || "error"}`, {},
    h("b", {}, one.line ? `line ${one.line}, column ${one.column}` : one.severity || "error"), " ", one.message,
    one.hint ? h("span.soft", {}, ` – ${one.hint}`) : null)));
  const submit = async () => {
    if (!form.reportValidity()) return;
    const definition = { ...others, text: writer.text() };
    if (policies) definition.state = policy.value;
    button.disabled = true;
    try {
      const put = await queries.put(title.value, definition, policies ? etag : null);
      etag = put.etag || null;
      toast(policies ? `${title.value} was replaced.` : `${title.value} is registered.`);
      await shared.refresh();
      if (!policies) location.hash = `#/q/${encodeURIComponent(title.value)}`;
    } catch (error) {
      show(error.problem?.diagnostics || [{ message: error.message }]);
      if (error.status === 412) toast("Another client changed this query. Reload it before you replace it.", "error");
    } finally { button.disabled = false; }
  };
  form = h("form.texts", { onsubmit: (event) => { event.preventDefault(); submit(); } },
    h("div.row", {}, name ? null : title, policies ? policy : null, button,
      h("span.soft", {}, "checked as you type")),
    box, problems);
  fill(part, form);
  language().then((known) => {
    writer = editor(box, {
      text, language: known, label: "Text of the query", submit,
      words: () => shared.streams.flatMap((stream) => [stream.name, `<${stream.iri}>`]),
      changed: () => {},
      check: async (value, signal) => {
        const { diagnostics } = await queries.check(value, signal);
        show(diagnostics);
        return diagnostics;
      },
    });
    if (pending !== null) writer.set(pending);
  });
  let pending = null;
  return {
    load(query) {
      etag = query.etag;
      const { bind, kb, sinks, entail, limits, paused } = query;
      others = { bind, kb, sinks, entail, limits, paused };
      if (writer) writer.set(query.text); else pending = query.text;
    },
    focus: () => writer?.focus(),
    destroy: () => writer?.destroy(),
  };
}

// ------------------------------------------------------------------ plan

function planTab(part, _shared, name) {
  const text = h("pre.plan");
  fill(part, h("section.card", {}, h("h2", {}, "How events are evaluated"), text));
  const load = async () => {
    try { text.textContent = await queries.plan(name); } catch (error) { text.textContent = error.message; }
  };
  return { shown: load };
}
