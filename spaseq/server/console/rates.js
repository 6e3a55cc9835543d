// Rates over time: sparklines in the list, and a chart of one query.

import { h, rate } from "./dom.js";
import uPlot from "./vendor/uplot.js";

const KEPT = 180;
const LEAST_SECONDS = 60;

/** Counters read again and again, as rates per second. */
export class Rates {
  constructor() {
    this.times = [];
    this.rows = [];
    this.last = null;
  }

  /** Add a reading `{name: count}` taken at `time` (seconds). */
  add(time, counts) {
    const last = this.last;
    this.last = { time, counts };
    if (!last || time <= last.time) return;
    const row = {};
    for (const [name, count] of Object.entries(counts)) {
      const before = last.counts[name] ?? count;
      row[name] = Math.max(count - before, 0) / (time - last.time);
    }
    this.times.push(time);
    this.rows.push(row);
    if (this.times.length > KEPT) { this.times.shift(); this.rows.shift(); }
  }

  series(name) { return this.rows.map((row) => row[name] ?? 0); }
  /** The mean of the last readings, so that the figure does not flicker. */
  now(name) {
    const recent = this.rows.slice(-3);
    return recent.length ? recent.reduce((sum, row) => sum + (row[name] ?? 0), 0) / recent.length : 0;
  }
}

/** A small line without axes. */
export function sparkline(values) {
  const width = 72, height = 20, most = Math.max(...values, 1e-9);
  const recent = values.slice(-60);
  const points = recent.map((value, number) =>
    `${((number + 60 - recent.length) * width / 59).toFixed(1)},${(height - 2 - (value / most) * (height - 5)).toFixed(1)}`);
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("class", "sparkline");
  svg.setAttribute("aria-hidden", "true");
  const line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
  line.setAttribute("points", points.join(" "));
  svg.append(line);
  return svg;
}

/** The time of day of seconds since 1970. */
const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString("en-GB");
/** A colour of the present theme, for the canvas: the value of the property has one for each theme. */
function css(name) {
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.color = `var(${name})`;
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}

/** The height of a chart: more on a wall. */
const tall = () => Math.min(Math.max(innerHeight / 6, 150), 260);

/** A chart in `parent`: `lines` are `{name, label, colour}` of `rates`. Returns `{update, destroy}`. */
export function chart(parent, rates, lines) {
  let plot = null;
  const draw = () => {
    plot?.destroy();
    const axis = { stroke: css("--soft"), grid: { stroke: css("--line"), width: 1 }, ticks: { show: false },
      font: "11px system-ui, sans-serif" };
    plot = new uPlot({
      width: Math.max(parent.clientWidth, 200), height: tall(), cursor: { y: false, points: { size: 6 } },
      legend: { show: lines.length > 1 }, padding: [8, 8, 0, 0],
      axes: [{ ...axis, size: 26, values: (_, times) => times.map(clock), space: 90 },
        ...lines.map((line, number) => ({ ...axis, scale: line.name, size: 52, side: number ? 1 : 3,
          stroke: css(line.colour), grid: { show: number === 0, stroke: css("--line"), width: 1 },
          values: (_, ticks) => ticks.map(rate) }))],
      scales: Object.fromEntries([
        ["x", { range: (_, low, high) => [Math.min(low, high - LEAST_SECONDS), high] }],
        ...lines.map((line) => [line.name, { range: (_, low, high) => [0, Math.max(high * 1.1, 1)] }]),
      ]),
      series: [{ value: (_, t) => (t ? clock(t) : "–") },
        ...lines.map((line, number) => ({ label: line.label, scale: line.name, stroke: css(line.colour), width: 1.6,
          fill: number ? undefined : `color-mix(in srgb, ${css(line.colour)} 14%, transparent)`,
          points: { show: false }, value: (_, value) => (value === null ? "–" : `${rate(value)}/s`) }))],
    }, data(), parent);
  };
  const data = () => [rates.times, ...lines.map(({ name }) => rates.series(name))];
  const resized = new ResizeObserver(() => plot && plot.setSize({ width: parent.clientWidth, height: tall() }));
  draw();
  resized.observe(parent);
  addEventListener("themechange", draw);
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", draw);
  return {
    update: () => plot.setData(data()),
    destroy() { resized.disconnect(); removeEventListener("themechange", draw);
      system.removeEventListener("change", draw); plot.destroy(); },
  };
}

/** A figure with its unit. */
export const figure = (label, value, title) => h("span.figure", { title: title || label }, h("b", {}, value), ` ${label}`);
