// The automaton of a query, drawn by the server, with what happens in it.
//
// The picture marks its parts: `[data-place]` is a place, `[data-edge="2-3"]` an arrow, and 0 is
// acceptance. Dots below a place are the groups of partial matches that wait there; arrows light up
// when partial matches move.

import { compact, fill, h } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";
const MOST_TOKENS = 9;
const STROKE = 1.6; // the width of an arrow, as in the style sheet
const still = matchMedia("(prefers-reduced-motion: reduce)");

function svg(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

/** An SVG text as elements, without its styles and anything that could run or load. */
function parsed(text) {
  // A style element would be refused by the page's content security policy, loudly.
  const plain = text.replace(/<style>[^<]*<\/style>/g, "");
  const root = new DOMParser().parseFromString(plain, "image/svg+xml").documentElement;
  if (root.nodeName !== "svg") throw new Error("the picture of the automaton is no SVG");
  for (const element of [root, ...root.querySelectorAll("*")]) {
    if (["script", "style", "foreignObject", "image", "a"].includes(element.localName)) {
      element.remove();
      continue;
    }
    for (const { name } of [...element.attributes]) {
      if (/^on|^style$|href$/i.test(name)) element.removeAttribute(name);
    }
  }
  return document.importNode(root, true);
}

/**
 * Show the picture in `parent`.
 *
 * @param picture The server's SVG.
 * @param chosen Called with the number of a place that was clicked.
 * @returns `{update(places), choose(number), match()}`; `places` are objects with `place`,
 *   `waiting` (the groups there) and `entered` (how often something came there).
 */
export function automaton(parent, picture, chosen) {
  const root = parsed(picture);
  const places = new Map();
  const before = new Map();
  root.classList.add("automaton");
  root.setAttribute("role", "group"); // the parts of an image would be hidden from screen readers
  for (const group of root.querySelectorAll("[data-place]")) {
    const number = Number(group.dataset.place);
    const box = group.querySelector("rect, circle");
    const { x, y, width, height } = measured(box);
    const tokens = svg("g", { class: "tokens" });
    const badge = svg("text", { class: "badge", x: x + width - 4, y: y + height + 16 });
    group.append(tokens, badge);
    group.setAttribute("tabindex", "0");
    group.setAttribute("role", "button");
    group.setAttribute("aria-label", `Place ${number}: who waits here`);
    group.addEventListener("click", () => chosen(number));
    group.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); chosen(number); }
    });
    places.set(number, { group, tokens, badge, x, y: y + height });
  }
  // Arrowheads keep their size when their line is lit.
  for (const marker of root.querySelectorAll("marker")) {
    marker.setAttribute("markerUnits", "userSpaceOnUse");
    for (const name of ["markerWidth", "markerHeight"]) {
      marker.setAttribute(name, STROKE * Number(marker.getAttribute(name) || 3));
    }
  }
  fill(parent, root);

  const lit = (edge) => {
    edge.classList.remove("lit");
    void edge.getBoundingClientRect(); // so that the animation starts again
    edge.classList.add("lit");
    if (still.matches || document.hidden) return;
    const spark = svg("circle", { class: "spark", r: 4 });
    edge.after(spark);
    const length = edge.getTotalLength();
    const back = edge.hasAttribute("marker-start");
    const started = performance.now();
    const step = (now) => {
      const part = Math.min((now - started) / 550, 1);
      const at = edge.getPointAtLength(length * (back ? 1 - part : part));
      spark.setAttribute("cx", at.x);
      spark.setAttribute("cy", at.y);
      if (part < 1) requestAnimationFrame(step); else spark.remove();
    };
    requestAnimationFrame(step);
  };
  const edges = (selector) => root.querySelectorAll(selector);

  return {
    update(counts) {
      for (const { place, waiting, entered } of counts) {
        const known = places.get(place);
        if (!known) continue;
        if (entered > (before.get(place) ?? entered)) edges(`[data-edge$="-${place}"]`).forEach(lit);
        before.set(place, entered);
        known.group.classList.toggle("waiting", waiting > 0);
        known.badge.textContent = waiting > MOST_TOKENS ? compact(waiting) : "";
        fill(known.tokens, Array.from({ length: Math.min(waiting, MOST_TOKENS) }, (_, number) =>
          svg("circle", { cx: known.x + 8 + number * 9, cy: known.y + 11, r: 3.2 })));
      }
    },
    choose(number) {
      places.forEach(({ group }, other) => group.classList.toggle("chosen", other === number));
    },
    match() {
      edges('[data-edge$="-0"]').forEach(lit);
    },
  };
}

/** The box of an element from its attributes, since `getBBox` needs an element that is drawn. */
function measured(box) {
  const value = (name) => Number(box.getAttribute(name) || 0);
  if (box.nodeName === "circle") {
    const size = 2 * value("r");
    return { x: value("cx") - value("r"), y: value("cy") - value("r"), width: size, height: size };
  }
  return { x: value("x"), y: value("y"), width: value("width"), height: value("height") };
}
