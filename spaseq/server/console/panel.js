// The panel at the right: details of what was clicked.

import { fill, h } from "./dom.js";

const panel = document.getElementById("panel");
let opener = null;

/** Show nodes under a title; the panel takes the focus, and gives it back when it closes. */
export function openPanel(title, ...children) {
  const wasHidden = panel.hidden;
  if (wasHidden) opener = document.activeElement;
  else panel.dispatchEvent(new Event("closed"));
  fill(panel,
    h("header", {}, h("h2", {}, title),
      h("button.quiet", { onclick: closePanel, title: "Close (Esc)", "aria-label": "Close" }, "×")),
    h("div.body", {}, children));
  panel.hidden = false;
  document.body.classList.add("with-panel");
  if (wasHidden) panel.querySelector("button").focus({ preventScroll: true });
  return panel.querySelector(".body");
}

export function closePanel() {
  if (panel.hidden) return;
  panel.hidden = true;
  document.body.classList.remove("with-panel");
  panel.dispatchEvent(new Event("closed"));
  opener?.focus?.();
  opener = null;
}
