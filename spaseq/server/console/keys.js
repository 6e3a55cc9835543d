// Keyboard shortcuts.

import { h } from "./dom.js";
import { closePanel } from "./panel.js";

const KEYS = [
  ["/", "find a query, stream or graph"], ["j  k", "next, previous query"], ["n", "new query"],
  ["1 – 4", "parts of a query: live, text, why, plan"], ["Ctrl Enter", "register the text in the editor"],
  ["t", "light or dark"], ["Esc", "close the details"], ["Esc Tab", "leave the editor"],
  ["← →", "other part of a query, on its tabs"], ["?", "these keys"],
];

function help() {
  const dialog = h("dialog.ask", { onclose: () => dialog.remove() },
    h("form", { method: "dialog" }, h("h2", {}, "Keys"),
      h("dl.keys", {}, KEYS.map(([key, what]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)])),
      h("div.row", {}, h("button", { autofocus: true }, "Close"))));
  document.body.append(dialog);
  dialog.showModal();
}

/** Listen for keys outside of fields. */
export function bindKeys({ shared, theme }) {
  document.getElementById("help").addEventListener("click", help);
  const go = (step) => {
    const names = shared.queries.map((query) => `#/q/${encodeURIComponent(query.name)}`);
    if (!names.length) return;
    const at = names.findIndex((name) => location.hash.startsWith(name));
    location.hash = names[(at + step + names.length) % names.length];
  };
  const actions = {
    "/": () => document.querySelector(".search").focus(), j: () => go(1), k: () => go(-1),
    n: () => { location.hash = "#/new"; }, t: theme, "?": help,
  };
  for (let tab = 0; tab < 4; tab += 1) {
    actions[tab + 1] = () => document.querySelectorAll("[role=tab]")[tab]?.click();
  }
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !document.querySelector("dialog[open]")) { closePanel(); return; }
    const inside = event.composedPath()[0];
    const typing = inside instanceof HTMLElement && (inside.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(inside.nodeName));
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const action = actions[event.key];
    if (action) { event.preventDefault(); action(); }
  });
}
