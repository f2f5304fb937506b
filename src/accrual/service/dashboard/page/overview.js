// The overview: one row for each bandit.

import * as api from "./api.js";
import { ranked } from "./arms.js";
import { $, h, say, show } from "./dom.js";
import { amount, count, inUnit, moment, plural, reward, short, sum, unitOf } from "./words.js";

const TOGETHER = 6; // states that are requested at a time

/** Read the state of every bandit and show them all. */
export async function draw(bandits, archived) {
  const states = [];
  for (let first = 0; first < bandits.length; first += TOGETHER) {
    const requested = bandits.slice(first, first + TOGETHER).map((bandit) => api.state(bandit.name));
    states.push(...(await Promise.all(requested)));
  }
  say($("overview-note"), `${plural(bandits.length, "bandit")}. Select one to see how it learns.`);
  $("overview-rows").replaceChildren(...bandits.map((bandit, i) => row(bandit, states[i])));
  show($("overview-table"), bandits.length > 0);
  $("archived-rows").replaceChildren(...archived.map(archivedRow));
  show($("archived"), archived.length > 0);
}

function archivedRow(bandit) {
  const erased = bandit.erase_at === null ? "kept until it is restored" : `to be erased on ${moment(bandit.erase_at)}`;
  const item = h("li");
  item.textContent = `${bandit.name}: archived on ${moment(bandit.archived)}, ${erased}`;
  return item;
}

function row(bandit, state) {
  const link = h("a", { href: `#${encodeURIComponent(bandit.name)}` });
  link.textContent = bandit.name;
  const number = (text) => h("td", { class: "number" }, text);
  const playing = state.arms.filter((arm) => !arm.retired);
  const [best] = ranked(playing);
  const known = best && best.estimate !== null;
  const arrived = state.arms.reduce((all, arm) => all + arm.observed, 0);
  return h(
    "tr", {},
    h("th", { scope: "row" }, link),
    h("td", { class: "fact" }, bandit.policy.split("(")[0]),
    h("td", { class: "fact" }, inUnit(bandit.window, unitOf(bandit))),
    h("td", { class: "number fact" }, count(playing.length)),
    number(short(state.decisions)),
    h("td", { class: "number fact" }, short(state.pending)),
    number(reward(sum(arrived), bandit.unit)),
    h("td", {}, known ? `${best.name}: ${reward(amount(best.estimate), bandit.unit)} per decision` : "–"),
  );
}
