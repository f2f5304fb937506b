// The table of arms: estimate with interval, share, reward arrived and expected, each on one scale for all arms.

import { $, h, s, say, show, ticks } from "./dom.js";
import { retiredBy } from "./guardrails.js";
import { byContext } from "./verdict.js";
import { aboutWords, amount, count, list, percent, plural, short, sum } from "./words.js";

const FEW = 12; // arms that are all shown at once; of more arms, the first ten are
const FIRST = 10;
const rows = new Map(); // arm's name -> the parts of its row that change
let all = false;

$("arms-more").addEventListener("click", () => {
  all = !all;
  $("arms-more").setAttribute("aria-expanded", String(all));
  document.dispatchEvent(new Event("redraw"));
});

/** Sort arms: the highest estimate first, then arms without an estimate, then retired arms. */
export function ranked(arms) {
  const value = (arm) => (arm.retired ? -2e15 : 0) + (arm.estimate === null ? -1e15 : arm.estimate);
  return [...arms].sort((a, b) => value(b) - value(a));
}

export function forget() {
  rows.clear();
  all = false;
  $("arms-rows").replaceChildren();
}

/**
 * @param means the true mean of each arm, by name, if the traffic is simulated
 * @param bandit what the service says of the bandit: its unit of reward may be missing
 */
export function draw(state, bandit, palette, means) {
  const order = ranked(state.arms);
  const shown = all || order.length <= FEW ? order : order.slice(0, FIRST);
  const known = order.filter((arm) => arm.estimate !== null);
  const truths = shown.map((arm) => means?.[arm.name]).filter((mean) => mean !== undefined);
  const low = Math.min(0, ...known.map((arm) => arm.interval[0]));
  const high = Math.max(...known.map((arm) => arm.interval[1]), ...truths, 0) || 1;
  const scale = scaled(ticks(low, high));
  const sums = order.map((arm) => Math.max(arm.observed, 0) + Math.max(arm.expected || 0, 0));
  const rewards = scaled(ticks(0, Math.max(...sums) || 1, 3));
  const playing = order.filter((arm) => !arm.retired);
  const ahead = state.verdict.leader ?? (playing.length > 1 && leads(playing) ? order[0].name : null);
  const lead = byContext(bandit) ? null : ahead; // by context, no arm leads for everyone
  const reasons = retiredBy(state);

  const body = $("arms-rows");
  for (const [name, row] of rows) {
    if (shown.some((arm) => arm.name === name)) continue;
    row.row.remove();
    rows.delete(name);
  }
  shown.forEach((arm, i) => {
    if (!rows.has(arm.name)) rows.set(arm.name, make(arm.name));
    const row = rows.get(arm.name);
    const of = { slot: palette.of(arm.name), lead: arm.name === lead, mean: means?.[arm.name], by: reasons.get(arm.name) };
    update(row, arm, { scale, rewards, ...of });
    if (body.children[i] !== row.row) body.insertBefore(row.row, body.children[i] || null);
  });
  foot(scale, rewards);

  const more = $("arms-more");
  show(more, order.length > FEW);
  say(more, all ? `Show the first ${FIRST} only` : `Show all ${count(order.length)} arms`);
  say($("share-of"), state.decisions ? `of the last ${count(Math.min(state.decisions, 1000))}` : "of decisions");
  let part = shown.length < order.length ? firstWords(shown, order) : "";
  if (bandit.unit) part = `${part}Reward is in ${bandit.unit}. `;
  say($("arms-note"), part + (means ? "A diamond marks the true mean over the whole window, known because the traffic is simulated." : ""));
}

/** Return whether the first of ranked arms is ahead of another arm, and not only first among equals. */
function leads([first, ...others]) {
  const known = others.filter((arm) => arm.estimate !== null);
  return Boolean(first) && first.estimate !== null && (!known.length || known.some((arm) => arm.estimate < first.estimate));
}

/** Say which arms are shown, if there are more. */
function firstWords(shown, order) {
  const known = shown.filter((arm) => arm.estimate !== null && !arm.retired).length;
  const of = `of ${count(order.length)} arms`;
  if (!known) return `${shown.length} ${of}; none of them has an estimate yet. `;
  if (known < shown.length) return `${shown.length} ${of}: first the ${known} that have an estimate. `;
  return `The ${shown.length} with the highest estimates, ${of}. `;
}

/** Warn of caps that are too low. */
export function aboveCap(state) {
  const over = state.arms.filter((arm) => arm.above_cap > 0).sort((a, b) => b.above_cap - a.above_cap);
  if (!over.length) return "";
  const named = over.slice(0, 3).map((arm) => `${arm.name} (${plural(arm.above_cap, "decision")}, cap ${amount(arm.cap)})`);
  if (over.length > named.length) named.push(`${count(over.length - named.length)} more`);
  return (
    `Rewards above the cap: ${list(named)}. A cap is the most that one decision can pay in all. The estimates below count all that was paid, but the policy ` +
    `chooses badly while a cap is too low. Create a new bandit, under another name, with caps that no decision exceeds.`
  );
}

/** Return a scale: its ticks, and where a number lies on it, in per cent of its width. */
function scaled(marks) {
  const low = marks[0];
  const high = marks.at(-1);
  const at = (x) => Math.min(Math.max(((x - low) / (high - low)) * 100, 0), 100);
  return { marks, at };
}

const pc = (x) => `${x.toFixed(2)}%`;

function make(name) {
  const cell = (label, kind, ...children) => h("td", { role: "cell", "data-label": label, class: kind }, ...children);
  const parts = { name };
  parts.swatch = h("i", { class: "swatch" });
  parts.title = h("span", { class: "arm-name" });
  parts.title.textContent = name;
  parts.tag = h("span", { class: "tag" });
  parts.about = h("small", { class: "about" });
  parts.whisker = s("svg", { class: "plot", "aria-hidden": "true" });
  parts.estimate = h("span", { class: "value" });
  parts.share = s("svg", { class: "plot", "aria-hidden": "true" });
  parts.percent = h("span", { class: "value" });
  parts.reward = s("svg", { class: "plot", "aria-hidden": "true" });
  parts.sums = h("span", { class: "value" });
  parts.decisions = h("span", { class: "value" });
  parts.row = h(
    "tr",
    { role: "row" },
    h("th", { role: "rowheader", scope: "row" }, h("span", { class: "arm" }, parts.swatch, parts.title, parts.tag), parts.about),
    cell("Reward per decision", "wide", h("div", { class: "cell" }, parts.whisker, parts.estimate)),
    cell("Share of recent decisions", "", h("div", { class: "cell" }, parts.share, parts.percent)),
    cell("Reward arrived, still expected", "wide", h("div", { class: "cell" }, parts.reward, parts.sums)),
    cell("Decisions", "number", parts.decisions),
  );
  return parts;
}

function update(row, arm, { scale, rewards, slot, lead, mean, by }) {
  row.row.classList.toggle("leads", lead);
  row.swatch.dataset.slot = slot;
  const retired = by ? `retired by ${by}` : "retired";
  say(row.tag, arm.retired ? retired : lead ? "leads" : "");
  say(row.about, aboutWords(arm.about));
  row.whisker.replaceChildren(...whisker(arm, scale, slot, mean));
  lines(row.estimate, ...estimateWords(arm));
  row.share.replaceChildren(
    s("rect", { class: "track", x: 0, y: "50%", width: "100%", height: 10, rx: 3, transform: "translate(0 -5)" }),
    s("rect", {
      class: "mark", "data-slot": slot, x: 0, y: "50%", width: pc(arm.share * 100), height: 10, rx: 3,
      transform: "translate(0 -5)",
    }),
  );
  say(row.percent, percent(arm.share));
  row.reward.replaceChildren(...reward(arm, rewards, slot));
  lines(row.sums, sum(arm.observed), arm.expected >= 0.005 ? `+ ${sum(arm.expected)} expected` : "");
  lines(row.decisions, count(arm.decisions), arm.pending ? `${short(arm.pending)} pending` : "");
}

function lines(element, first, second) {
  if (!element.firstChild) element.append(h("b"), h("small"));
  say(element.firstChild, first);
  say(element.lastChild, second);
}

function estimateWords(arm) {
  if (arm.estimate === null) return ["–", arm.decisions ? "no estimate yet" : "not tried yet"];
  return [amount(arm.estimate), `${amount(arm.interval[0])} to ${amount(arm.interval[1])}`];
}

const grid = (scale) =>
  scale.marks.map((mark) =>
    s("line", { class: "grid", x1: pc(scale.at(mark)), x2: pc(scale.at(mark)), y1: 0, y2: "100%" }),
  );

function whisker(arm, scale, slot, mean) {
  const found = grid(scale);
  if (arm.estimate !== null) {
    const [low, high] = arm.interval.map(scale.at);
    const line = (x1, x2, y1, y2) =>
      s("line", { class: "whisker", "data-slot": slot, x1: pc(x1), x2: pc(x2), y1, y2 });
    found.push(
      line(low, high, "50%", "50%"),
      line(low, low, "32%", "68%"),
      line(high, high, "32%", "68%"),
      s("circle", { class: "dot", "data-slot": slot, cx: pc(scale.at(arm.estimate)), cy: "50%", r: 5.5 }),
    );
  }
  if (mean !== undefined) {
    found.push(
      s("svg", { x: pc(scale.at(mean)), y: "50%", class: "truth" }, s("path", { d: "M0 -6.5 L5 0 L0 6.5 L-5 0 Z" })),
    );
  }
  return found;
}

function reward(arm, scale, slot) {
  const arrived = scale.at(Math.max(arm.observed, 0));
  const end = scale.at(Math.max(arm.observed, 0) + Math.max(arm.expected || 0, 0));
  const bar = (kind, x, width) =>
    s("rect", {
      class: kind, "data-slot": slot, x: pc(x), y: "50%", width: pc(width), height: 12, transform: "translate(0 -6)",
    });
  return [...grid(scale), bar("mark", 0, arrived), bar("mark expected", arrived, end - arrived)];
}

function foot(scale, rewards) {
  const axis = (of) => {
    const plot = s("svg", { class: "plot axis", "aria-hidden": "true" });
    of.marks.forEach((mark) => {
      const text = s("text", { x: pc(of.at(mark)), y: 13, "text-anchor": "middle" });
      text.textContent = Math.abs(mark) >= 1000 ? short(mark) : String(Number(mark.toPrecision(3)));
      plot.append(text);
    });
    return h("div", { class: "cell" }, plot, h("span", { class: "value" }));
  };
  const empty = () => h("td", { role: "cell" });
  $("arms-foot").replaceChildren(
    h("tr", { role: "row", "aria-hidden": "true" },
      empty(), h("td", { role: "cell", class: "wide" }, axis(scale)), empty(),
      h("td", { role: "cell", class: "wide" }, axis(rewards)), empty()),
  );
}
