// The three charts: shares over time, how fast arms pay, and regret.

import { Chart } from "./charts.js";
import { $, say, show } from "./dom.js";
import { count, inUnit, percent, short, unitOf } from "./words.js";

const OTHERS = "other arms";
const LEAST = 100; // decisions of a part, so that a share means something
const MOST = 80; // parts; if there are more, each two become one

const whole = (mark) => `${Math.round(mark * 100)} %`;
const full = () => [0, 1];

export class Shares {
  #chart = new Chart($("share-chart"), { x: { label: "decisions" }, y: { words: whole, range: full }, stacked: true });
  #parts = []; // {at, counts: Map(arm -> decisions)}
  #counted = null; // of each arm, at the end of the last part

  /** Begin with the history of the log. */
  begin(history, state, bandit) {
    this.#parts = history.counts.map((counts, i) => ({
      at: bandit.rounds ? history.decisions[i] : history.at[i],
      counts: new Map(history.arms.map((name, arm) => [name, counts[arm]])),
    }));
    this.#counted = new Map(state.arms.map((arm) => [arm.name, arm.decisions]));
  }

  draw(state, bandit, shown) {
    const now = new Map(state.arms.map((arm) => [arm.name, arm.decisions - (this.#counted.get(arm.name) || 0)]));
    const fresh = { at: bandit.rounds ? state.decisions : state.at, counts: now };
    if (sum(now) >= LEAST) {
      this.#parts.push(fresh);
      this.#counted = new Map(state.arms.map((arm) => [arm.name, arm.decisions]));
      if (this.#parts.length > MOST) this.#parts = paired(this.#parts);
    }
    // Of several parts that end at one moment, the last stands for all.
    const parts = this.#parts.filter((one, i, all) => i + 1 === all.length || all[i + 1].at > one.at);
    if (parts.length < 2) {
      this.#chart.wait(`Shown from ${2 * LEAST} decisions on. There have been ${count(state.decisions - bandit.imported)}.`);
      return;
    }
    const rest = state.arms.length - shown.length;
    const series = shown.map(({ name, slot }) => ({ name, slot, shares: parts.map((one) => share(one, name)) }));
    if (rest > 0) {
      const named = series.map((one) => one.shares);
      const shares = parts.map((_, i) => Math.max(1 - named.reduce((all, one) => all + one[i], 0), 0));
      series.push({ name: `${count(rest)} ${OTHERS}`, slot: 0, shares });
    }
    const below = parts.map(() => 0);
    for (const one of series) {
      const bottom = below.at(-1);
      one.y = one.shares.map((part, i) => (below[i] += part));
      one.from = (bottom + below.at(-1)) / 2;
      one.value = percent(one.shares.at(-1));
      one.read = (i) => percent(one.shares[i]);
    }
    this.#chart.draw(parts.map((one) => one.at), series, !bandit.rounds);
  }
}

const sum = (counts) => [...counts.values()].reduce((all, one) => all + one, 0);
const share = (part, name) => (part.counts.get(name) || 0) / Math.max(sum(part.counts), 1);

function paired(parts) {
  const found = [];
  for (let i = 0; i < parts.length; i += 2) {
    const [a, b] = [parts[i], parts[i + 1]];
    const counts = new Map(a.counts);
    if (b) for (const [name, n] of b.counts) counts.set(name, (counts.get(name) || 0) + n);
    found.push({ at: (b || a).at, counts });
  }
  return found;
}

export class Spreads {
  #chart = new Chart($("spread-chart"), { x: { label: "" }, y: { words: whole, range: full } });
  #unit = "";

  draw(state, bandit, shown) {
    const unit = unitOf(bandit);
    if (unit.name !== this.#unit) {
      this.#unit = unit.name;
      this.#chart = renewed($("spread-chart"), {
        x: { label: `age of the decision, in ${unit.name}s` }, y: { words: whole, range: full },
      });
    }
    const arms = new Map(state.arms.map((arm) => [arm.name, arm]));
    const known = shown.filter(({ name }) => arms.get(name).spread.length);
    if (!known.length) {
      this.#chart.wait("Nothing is known yet: decisions are too young, or have paid nothing.");
      return;
    }
    const ages = [0, ...state.ages];
    const series = known.map(({ name, slot }) => {
      let so = 0;
      const { spread, reached } = arms.get(name);
      const all = [0, ...spread.map((part) => (so += part))];
      const y = all.map((part, i) => (ages[i] <= reached * 1.000001 ? part : null)); // beyond is a guess
      const half = crossing(ages, all, 0.5);
      const value = half <= reached ? `half by ${inUnit(half, unit)}` : `under half by ${inUnit(reached, unit)}`;
      const read = (i) => (y[i] === null ? null : `${percent(y[i])} by ${inUnit(ages[i], unit)}`);
      return { name, slot, y, from: null, half, value, read };
    });
    [...series].sort((a, b) => a.half - b.half).forEach((one, i) => (one.rank = i));
    const oldest = Math.max(...known.map(({ name }) => arms.get(name).reached));
    say(
      $("spread-note"),
      oldest < bandit.window * 0.999 ? `No decision is older than ${inUnit(oldest, unit)} yet, so nothing is known beyond that age.` : "",
    );
    this.#chart.draw(ages.map((age) => age / unit.size), series);
  }
}

/** Return the x at which a growing y passes a level. */
function crossing(x, y, level) {
  const i = Math.max(y.findIndex((one) => one >= level), 1);
  const part = (level - y[i - 1]) / (y[i] - y[i - 1] || 1);
  return x[i - 1] + part * (x[i] - x[i - 1]);
}

function renewed(host, options) {
  host.replaceChildren();
  return new Chart(host, options);
}

export class Regrets {
  #chart = null;

  draw(truth) {
    show($("regret-panel"), true);
    this.#chart ||= renewed($("regret-chart"), {
      x: { label: "" }, y: { words: short, label: `${truth.unit} missed`, range: (_, low, high) => [0, Math.max(high * 1.05, 1)] },
    });
    const best = Object.entries(truth.means).reduce((a, b) => (b[1] > a[1] ? b : a))[0];
    say(
      $("regret-note"),
      `${sentence(truth.unit)} missed so far against always choosing ${best}, which is truly best. ` +
        `The lower line is the same policy with the same floor if every reward came at once. The gap between the lines is what waiting costs. ` +
        `Choosing evenly would have missed ${short(truth.evenly)}.`,
    );
    if (truth.at.length < 2) {
      this.#chart.wait("Shown after some more decisions.");
      return;
    }
    const line = (name, slot, dash, y) => ({
      name, slot, dash, y, from: y.at(-1), value: short(y.at(-1)), read: (i) => short(y[i]),
    });
    const [x, regret, none] = distinct(truth.at, truth.regret, truth.no_delay);
    this.#chart.draw(x, [line("this bandit", 1, 0, regret), line("without any delay", 3, 1, none)], true);
  }

  hide() {
    show($("regret-panel"), false);
  }
}

/** Return the columns with only the last row of each x. */
function distinct(x, ...columns) {
  const kept = x.map((_, i) => i).filter((i) => i + 1 === x.length || x[i + 1] > x[i]);
  return [x, ...columns].map((column) => kept.map((i) => column[i]));
}

const sentence = (text) => text[0].toUpperCase() + text.slice(1);

