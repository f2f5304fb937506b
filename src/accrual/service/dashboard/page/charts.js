// The line charts. The labels beside a chart are ordinary text, at the height of the line that they name.

import uPlot from "./vendor/uPlot.esm.js";
import { colour, css } from "./colours.js";
import { h, s, say } from "./dom.js";
import { count } from "./words.js";

const HEIGHT = 290;
const LABEL = 35; // pixels from one label to the next
const DASHES = [[], [7, 4], [2, 3], [10, 3, 2, 3], [5, 2], [12, 4], [1, 4]];

const dashOf = (one) => DASHES[one.dash ?? Math.max(one.slot - 1, 0)];

const dark = matchMedia("(prefers-color-scheme: dark)");

export class Chart {
  #host;
  #plot = null;
  #shape = "";
  #labels;
  #items = [];
  #series = [];
  #options;

  /**
   * @param options x: {time} or {label}; y: {label, values}; stacked; describe(series) for those who cannot see it
   */
  constructor(host, options) {
    this.#host = host;
    this.#options = options;
    this.area = h("div", { class: "area", role: "img" });
    this.#labels = h("ul", { class: "labels" });
    this.#wait = h("p", { class: "wait" });
    host.append(this.area, this.#labels, this.#wait);
    new ResizeObserver(() => this.#resize()).observe(this.area);
    dark.addEventListener("change", () => (this.#shape = ""));
  }

  #wait;

  /** Say why there is nothing to draw yet. */
  wait(text) {
    say(this.#wait, text);
    this.#host.classList.add("waiting");
  }

  /**
   * @param x numbers, growing
   * @param series [{name, slot, y, value, from}]: numbers, what the label says, and at which y it belongs
   */
  draw(x, series, time = false) {
    this.#host.classList.remove("waiting");
    this.#series = series;
    const shape = JSON.stringify([time, dark.matches, ...series.map((one) => [one.name, one.slot])]);
    const data = [x, ...series.map((one) => one.y)];
    if (shape !== this.#shape) {
      this.#shape = shape;
      this.#plot?.destroy();
      this.area.replaceChildren();
      this.#plot = new uPlot(this.#uplot(series, time), data, this.area);
      this.#items = series.map((one) => this.#label(one));
      this.#labels.replaceChildren(...this.#items.map((item) => item.element));
    } else {
      this.#plot.setData(data);
    }
    this.area.setAttribute("aria-label", series.map((one) => `${one.name}: ${one.value}`).join("; "));
    this.#show(null);
  }

  #label(one) {
    const key = this.#options.stacked
      ? h("i", { class: "swatch", "data-slot": one.slot })
      : s("svg", { class: "plot", "aria-hidden": "true" }, s("line", {
          "data-slot": one.slot, x1: 0, x2: "100%", y1: "50%", y2: "50%", "stroke-dasharray": dashOf(one).join(" ") || null,
        }));
    const name = h("span", { class: "label-name" });
    name.textContent = one.name;
    const value = h("span", { class: "label-value" });
    return { element: h("li", {}, key, name, value), value };
  }

  /** Show the labels' figures: the last ones, or those at the pointer. */
  #show(index) {
    this.#series.forEach((one, i) => {
      const hovered = index === null || index === undefined ? null : one.read(index);
      say(this.#items[i].value, hovered ?? one.value);
    });
  }

  /** Place each label at the height of its line's end, without overlap. */
  #place() {
    const plot = this.#plot;
    if (!plot || !this.#items.length) return;
    const ratio = devicePixelRatio || 1;
    const top = plot.bbox.top / ratio;
    const wanted = this.#series
      .map((one, i) => ({ i, y: one.from === null ? top : plot.valToPos(one.from, "y") + top }))
      .sort((a, b) => a.y - b.y || (this.#series[a.i].rank ?? a.i) - (this.#series[b.i].rank ?? b.i));
    let next = 0;
    for (const one of wanted) {
      one.y = Math.max(one.y - LABEL / 2, next);
      next = one.y + LABEL;
    }
    let limit = HEIGHT;
    for (const one of wanted.reverse()) {
      one.y = Math.min(one.y, limit - LABEL);
      limit = one.y;
      this.#items[one.i].element.style.top = `${Math.max(one.y, 0)}px`;
    }
  }

  #resize() {
    const width = Math.floor(this.area.clientWidth);
    if (!this.#plot || !width || width === this.#plot.width) return;
    this.#plot.setSize({ width, height: HEIGHT });
  }

  #uplot(series, time) {
    const { x, y, stacked } = this.#options;
    const ink = css("--quiet");
    const font = `12px ${css("--font")}`;
    const axis = {
      stroke: ink, font, labelFont: font, labelGap: 2,
      grid: { stroke: css("--grid"), width: 1 },
      ticks: { stroke: css("--grid"), width: 1, size: 4 },
    };
    return {
      width: Math.max(Math.floor(this.area.clientWidth), 100),
      height: HEIGHT,
      padding: [8, 20, 0, 0],
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
      drawOrder: stacked ? ["series", "axes"] : ["axes", "series"],
      hooks: {
        setCursor: [(plot) => this.#show(plot.cursor.idx)],
        draw: [() => this.#place()], // heights are known only once the plot has been drawn
      },
      scales: { x: { time }, y: { range: y.range } },
      axes: [
        {
          ...axis, size: 34, space: 70, label: time ? undefined : x.label, labelSize: 18,
          values: time ? dates : (_, marks) => marks.map((mark) => (Math.abs(mark) >= 1000 ? count(mark) : String(mark))),
        },
        { ...axis, size: 52, space: 40, label: y.label, labelSize: 18, values: (_, marks) => marks.map(y.words) },
      ],
      series: [
        {},
        ...series.map((one) => ({
          label: one.name,
          stroke: colour(one.slot),
          width: stacked ? 1.5 : 2.25,
          dash: stacked ? undefined : dashOf(one),
          fill: stacked ? `color-mix(in srgb, ${colour(one.slot)} 62%, transparent)` : undefined,
          points: { show: false },
        })),
      ],
      bands: stacked ? series.slice(1).map((_, i) => ({ series: [i + 2, i + 1] })) : undefined,
    };
  }
}

const DAY = 86_400;
const STYLES = [
  [400 * DAY, { month: "short", year: "numeric" }],
  [3 * DAY, { day: "numeric", month: "short" }],
  [0.5 * DAY, { weekday: "short", hour: "2-digit", minute: "2-digit" }],
  [600, { hour: "2-digit", minute: "2-digit" }],
  [0, { hour: "2-digit", minute: "2-digit", second: "2-digit" }],
];

/** Write the marks of a time axis: dates over weeks, the time of day over hours. */
function dates(plot, marks) {
  const length = plot.scales.x.max - plot.scales.x.min;
  const [, style] = STYLES.find(([least]) => length >= least);
  const format = new Intl.DateTimeFormat("en-GB", style);
  return marks.map((mark) => format.format(mark * 1000));
}
