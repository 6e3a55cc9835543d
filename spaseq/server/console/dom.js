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
