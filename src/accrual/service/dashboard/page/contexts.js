// For whom which arm wins: for each feature of a bandit, what its arms are expected to pay at each level.

import { $, h, say, show } from "./dom.js";
import { amount, list, plural } from "./words.js";

const ARMS = 4; // columns, and more where more arms are the highest at some level

/** Show every feature; nothing for a bandit without. */
export function draw(state, bandit) {
  show($("contexts-panel"), state.features.length > 0);
  if (!state.features.length) return;
  const host = $("contexts");
  const text = JSON.stringify(state.features);
  if (host.dataset.shown === text) return; // nothing is new, and a reader's selection stays
  host.dataset.shown = text;
  const known = state.features.some((feature) => feature.levels.length);
  say($("contexts-note"), known
    ? "What a decision is expected to pay at each level, all else as it is on average. These are estimates without an interval: for looking, not for stopping."
    : bandit.policy.startsWith("AgeLinTS") ? "The first figures appear here once enough has been paid." : "This policy does not say what it expects by context.");
  say($("contexts-worth"), `What choosing by context is worth is answered by: accrual fit STORE --bandit ${bandit.name} --context ${state.features.map((feature) => `context_${feature.name}`).join(",")}`);
  host.replaceChildren(...state.features.map(one));
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
