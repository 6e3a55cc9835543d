// Elements and texts. Nothing here, or anywhere in the console, writes HTML from a string.

/** An element: `h("button.quiet", {onclick}, "Text")`. Children may be nodes, texts or null. */
export function h(selector, attributes = {}, ...children) {
  const [name, ...classes] = selector.split(".");
  const element = document.createElement(name || "div");
  if (classes.length) element.className = classes.join(" ");
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "dataset") Object.assign(element.dataset, value);
    else if (key in element && key !== "list" && key !== "role") element[key] = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

/** Replace the children of an element. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null));
  return element;
}

/**
 * Make the children of an element like the given ones, and keep the elements that are there: the one
 * that has the focus keeps it, and one that is being clicked is clicked. Listeners are not renewed.
 */
export function renew(element, ...children) {
  const wanted = children.flat(Infinity).filter((child) => child !== null && child !== undefined);
  wanted.forEach((child, number) => {
    const there = element.childNodes[number];
    if (!there) element.append(child);
    else if (typeof child === "object" && there.nodeName === child.nodeName) become(there, child);
    else if (there.nodeType !== Node.TEXT_NODE || there.data !== String(child)) there.replaceWith(child);
  });
  while (element.childNodes.length > wanted.length) element.lastChild.remove();
}

/** Make a node like another one of the same name. */
function become(node, wanted) {
  if (node.nodeType === Node.TEXT_NODE) {
    if (node.data !== wanted.data) node.data = wanted.data;
    return;
  }
  for (const { name } of [...node.attributes]) if (!wanted.hasAttribute(name)) node.removeAttribute(name);
  for (const { name, value } of wanted.attributes) {
    if (node.getAttribute(name) !== value) node.setAttribute(name, value);
  }
  renew(node, [...wanted.childNodes]);
}

/** A part of an address as text, also where it is no valid encoding. */
export function decoded(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

/** Show a message for some seconds. */
export function toast(text, kind = "info") {
  const note = h(`p.toast.${kind}`, {}, text);
  document.getElementById("toasts").append(note);
  setTimeout(() => note.remove(), kind === "error" ? 9000 : 4000);
}

/** Ask before something is lost. Resolves to true or false. */
export function confirmed(question, verb) {
  return new Promise((resolve) => {
    const dialog = h("dialog.ask", { onclose: () => { dialog.remove(); resolve(dialog.returnValue === "yes"); } },
      h("form", { method: "dialog" },
        h("p", {}, question),
        h("div.row", {},
          h("button.danger", { value: "yes" }, verb),
          h("button", { value: "no", autofocus: true }, "Cancel"))));
    document.body.append(dialog);
    dialog.showModal();
  });
}

const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const WHOLE = new Intl.NumberFormat("en");

/** 1234567 → "1.2M". */
export const compact = (number) => (Math.abs(number) < 10000 ? WHOLE.format(Math.round(number)) : SHORT.format(number));

/** A rate per second in few characters. */
export function rate(number) {
  if (!(number > 0)) return "0";
  return number < 10 ? number.toFixed(1) : compact(number);
}

/** Seconds → "2 min". */
export function duration(seconds) {
  if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return "–";
  const size = Math.abs(seconds);
  if (size < 1) return `${Math.round(seconds * 1000)} ms`;
  if (size < 120) return `${Number(seconds.toFixed(1))} s`;
  if (size < 7200) return `${Math.round(seconds / 60)} min`;
  if (size < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${WHOLE.format(Math.round(seconds / 86400))} days`;
}

/** A time of the API (an ISO text or a number of seconds) for reading. */
export function time(value) {
  if (value === null || value === undefined) return "–";
  return String(value).replace("T", " ").replace(/(\.\d*?)0+Z$/, "$1Z").replace(/\.?Z$/, "");
}
