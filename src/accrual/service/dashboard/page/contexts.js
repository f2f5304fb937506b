// Contexts: for each feature, what the arms are expected to pay at each level; and what contexts are worth, as the
// reward per decision with and without them.

import { $, h, say, show } from "./dom.js";
import { amount, count, list, plural } from "./words.js";

const ARMS = 4; // columns; there are more if more arms are the highest at some level

/** Show every feature of a bandit that has features. */
export function draw(state, bandit) {
  show($("contexts-panel"), state.features.length > 0);
  if (!state.features.length) return;
  const host = $("contexts");
  const text = JSON.stringify(state.features);
  if (host.dataset.shown === text) return; // nothing is new; the text that a reader has selected stays
  host.dataset.shown = text;
  const known = state.features.some((feature) => feature.levels.length);
  say($("contexts-note"), known
    ? "What a decision is expected to pay at each level, if the other features are as they are on average. These estimates have no interval. They are not a reason to stop."
    : bandit.policy.startsWith("AgeLinTS") ? "The first figures appear here when enough reward has arrived." : "This policy does not compute what it expects by context.");
  host.replaceChildren(...state.features.map(one));
}

/** Remove what was shown of another bandit. */
export function forget() {
  say($("worth-sentence"), "The service is computing this from the log.");
  say($("worth-note"), "");
  $("worth-figures").replaceChildren();
}

/** Show what contexts are worth. */
export function drawWorth(worth) {
  say($("worth-sentence"), worth.more ? "" : worth.sentence); // else the verdict box says it
  const parts = worth.decisions < worth.closed ? `the last ${count(worth.decisions)} of ${count(worth.closed)}` : `all ${count(worth.closed)}`;
  say($("worth-note"), worth.more
    ? `Judged by ${parts} closed decisions and the probabilities with which this bandit chose their arms: a linear model learns from some decisions and chooses for later ones. The 95 % intervals hold for one look. They are not a reason to stop. The intervals for parts of the contexts hold together.`
    : "");
  const rows = worth.more ? [
    ["Chosen by context", worth.with_contexts],
    [`One arm for all: ${worth.single}`, worth.without],
    ["Difference", worth.more],
    ...worth.winners.map((one) => [`${one.arm} instead of ${one.than}, where ${one.part}`, one.more]),
  ] : [];
  const host = $("worth-figures");
  const text = JSON.stringify(rows);
  if (host.dataset.shown === text) return;
  host.dataset.shown = text;
  host.replaceChildren(...(rows.length ? [worthTable(rows)] : []));
}

function worthTable(rows) {
  const titles = ["Choice", "Reward per decision", "95 % interval"];
  const title = (text) => h("th", { role: "columnheader", scope: "col" }, text);
  const cell = (label, text) => h("td", { role: "cell", "data-label": label }, text);
  return h(
    "table", { role: "table", "aria-label": "What contexts are worth" },
    h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, ...titles.map(title))),
    h("tbody", { role: "rowgroup" }, ...rows.map(([name, { value, low, high }], i) => h(
      "tr", { role: "row" }, h("th", { role: "rowheader", scope: "row" }, name),
      cell(titles[1], amount(value) + (i > 2 ? " more" : "")), cell(titles[2], `${amount(low)} to ${amount(high)}`),
    ))),
  );
}

function one(feature) {
  const parts = [heading(feature.name)];
  const odd = [
    feature.missing ? `missing in ${plural(feature.missing, "decision")}` : "",
    feature.unknown ? `not one of its levels in ${plural(feature.unknown, "decision")}` : "",
    feature.beyond ? `out of its range in ${plural(feature.beyond, "decision")}` : "",
  ].filter(Boolean);
  if (odd.length) parts.push(h("p", { class: "hint" }, `It was ${list(odd)}.`));
  if (feature.levels.length) parts.push(table(feature));
  return h("div", { class: "guardrail" }, ...parts);
}

function heading(text) {
  const head = h("h3");
  say(head, text);
  return head;
}

function table(feature) {
  const all = Object.keys(feature.levels[0].expected);
  const most = (arm) => Math.max(...feature.levels.map((level) => level.expected[arm]));
  const winners = new Set(feature.levels.map((level) => highest(level, all)));
  const ranked = [...all].sort((a, b) => winners.has(b) - winners.has(a) || most(b) - most(a));
  const arms = ranked.slice(0, Math.max(ARMS, winners.size));
  const title = (text) => { const cell = h("th", { role: "columnheader", scope: "col" }); say(cell, text); return cell; };
  return h(
    "table", { role: "table", "aria-label": feature.name },
    h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, title("Level"), ...arms.map(title))),
    h("tbody", { role: "rowgroup" }, ...feature.levels.map((level) => row(level, arms))),
  );
}

const highest = (level, arms) => arms.reduce((a, b) => (level.expected[a] >= level.expected[b] ? a : b));

function row(level, arms) {
  const best = highest(level, arms);
  const name = h("th", { role: "rowheader", scope: "row" });
  say(name, level.level);
  const cell = (arm) =>
    h("td", { role: "cell", "data-label": arm }, arm === best
      ? h("b", {}, amount(level.expected[arm]), " ", h("span", { class: "tag" }, "highest"))
      : amount(level.expected[arm]));
  return h("tr", { role: "row" }, name, ...arms.map(cell));
}
