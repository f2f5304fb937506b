// Guardrails: how the arms do on each other stream of pieces, such as refunds, in words and in a small table.

import { $, h, say, show } from "./dom.js";
import { amount, count, plural } from "./words.js";

/** Return a map from each arm that a guardrail retired to the name of the guardrail. */
export function retiredBy(state) {
  const found = new Map();
  for (const rail of state.guardrails.filter((one) => one.action === "retire")) {
    for (const arm of rail.arms) if (arm.worse && arm.retired) found.set(arm.name, rail.name);
  }
  return found;
}

/** The arms that a guardrail has found worse, and that somebody should hear of: not those retired by hand since. */
export const worseArms = (rail) => rail.arms.filter((arm) => arm.worse && (!arm.retired || rail.action === "retire"));

/** Say which guardrails have found such arms; empty if none has. */
export function alert(state) {
  const rails = state.guardrails.filter((rail) => worseArms(rail).length);
  return rails.map((rail) => `Guardrail ${rail.name}: ${rail.sentence}`).join(" ");
}

/** Show every guardrail, those with a worse arm first. */
export function draw(state) {
  show($("guardrails-panel"), state.guardrails.length > 0);
  const worse = (rail) => rail.arms.some((arm) => arm.worse);
  const rails = [...state.guardrails].sort((a, b) => worse(b) - worse(a));
  const host = $("guardrails");
  const text = JSON.stringify(rails);
  if (host.dataset.shown === text) return; // nothing is new; the text that a reader has selected stays
  host.dataset.shown = text;
  host.replaceChildren(...rails.map(one));
}

function one(rail) {
  const head = h("h3", {}, rail.name);
  const said = h("p", { class: rail.arms.some((arm) => arm.worse) ? "notice" : "" }, rail.sentence);
  const asked = `An arm may have up to ${rail.margin} more per decision than the best other arm. A worse arm is ${rail.action === "retire" ? "retired" : "only flagged"}.`;
  const cut = rail.cut ? ` ${plural(rail.cut, "total")} above the cap of ${rail.cap} ${rail.cut === 1 ? "counts" : "count"} as the cap.` : "";
  const title = (text, note) => h("th", { role: "columnheader", scope: "col" }, h("span", {}, text), note ? h("small", {}, note) : null);
  const table = h(
    "table", { role: "table", "aria-label": rail.name },
    h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, title("Arm"), title("Per decision"), title("More than the best other arm", "estimate and lower bound"), title("Closed decisions"))),
    h("tbody", { role: "rowgroup" }, ...rail.arms.map(row)),
  );
  return h("div", { class: "guardrail" }, head, said, h("p", { class: "hint" }, asked + cut), table);
}

function row(arm) {
  const name = h("span", { class: "arm-name" });
  say(name, arm.name);
  const tag = arm.worse ? (arm.retired ? "worse, retired" : "worse") : arm.retired ? "retired" : "";
  const more = arm.excess === null ? "–" : `${amount(arm.excess)}, at least ${amount(arm.excess_least)}`;
  const cell = (label, text) => h("td", { role: "cell", "data-label": label }, text);
  return h(
    "tr", { role: "row", class: arm.worse ? "worse" : "" },
    h("th", { role: "rowheader", scope: "row" }, h("span", { class: "arm" }, name, h("span", { class: "tag" }, tag))),
    cell("Per decision", amount(arm.mean)), cell("More than the best other arm", more), cell("Closed decisions", count(arm.decisions)),
  );
}
