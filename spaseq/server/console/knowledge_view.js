// The graphs of the knowledge base: read, replaced as a whole, removed.

import { graphs } from "./api.js";
import { confirmed, fill, h, toast } from "./dom.js";

const MOST = 200000;

export function knowledgeView(main, shared, iri) {
  let etag = null;
  const name = h("input", { value: iri || "", required: true, readOnly: Boolean(iri), "aria-label": "IRI of the graph", placeholder: "http://example.org/kb" });
  const text = h("textarea", { rows: 22, spellcheck: false, "aria-label": "Triples in Turtle" });
  const replace = h("button.primary", {}, iri ? "Replace" : "Add the graph");
  const refresh = async () => { shared.graphs = await graphs.list(); shared.refresh(); };
  const save = async (event) => {
    event.preventDefault();
    try {
      await graphs.put(name.value, text.value, "text/turtle", etag);
      toast(`${name.value} was replaced.`);
      await refresh();
      location.hash = `#/kb/${encodeURIComponent(name.value)}`;
    } catch (error) { toast(error.message, "error"); }
  };
  const remove = async () => {
    if (!await confirmed(`Remove the graph ${iri}?`, "Remove")) return;
    try { await graphs.remove(iri); await refresh(); location.hash = "#/kb"; } catch (error) { toast(error.message, "error"); }
  };
  fill(main,
    h("div.heading", {}, h("h1", {}, iri ? "Graph" : "Knowledge base"), iri ? h("button.danger", { onclick: remove }, "Remove") : null),
    h("section.card", {}, h("form.stacked", { onsubmit: save }, name, text,
      h("div.row", {}, replace,
        h("span.soft", {}, "Queries see the new graph from the next event on.")))));
  if (iri) {
    graphs.get(iri).then((found) => {
      etag = found.etag;
      text.value = found.text.slice(0, MOST);
      if (found.text.length > MOST) {
        text.readOnly = true;
        replace.disabled = true;
        toast("The graph is too large to edit here; its beginning is shown.");
      }
    }, (error) => {
      // An empty text would replace what could not be shown.
      text.required = true;
      text.placeholder = error.message;
      toast(error.message, "error");
    });
  }
  return {};
}
