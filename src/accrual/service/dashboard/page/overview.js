// The overview: one row for each bandit.

import * as api from "./api.js";
import { ranked } from "./arms.js";
import { $, h, say, show } from "./dom.js";
import { amount, count, inUnit, moment, plural, reward, short, sum, unitOf } from "./words.js";

const TOGETHER = 6; // bandits whose state is asked for at a time

/** Ask for the state of every bandit and show them. */
export async function draw(bandits, archived) {
  const states = [];
  for (let first = 0; first < bandits.length; first += TOGETHER) {
    const asked = bandits.slice(first, first + TOGETHER).map((bandit) => api.state(bandit.name));
    states.push(...(await Promise.all(asked)));
  }
  say($("overview-note"), `${plural(bandits.length, "bandit")}. Select one to see how it learns.`);
  $("overview-rows").replaceChildren(...bandits.map((bandit, i) => row(bandit, states[i])));
  show($("overview-table"), bandits.length > 0);
  $("archived-rows").replaceChildren(...archived.map(putAway));
  show($("archived"), archived.length > 0);
}

function putAway(bandit) {
  const erased = bandit.erase_at === null ? "kept" : `to be erased on ${moment(bandit.erase_at)}`;
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
