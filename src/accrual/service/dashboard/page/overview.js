// The overview: one row for each bandit, those that need somebody first.

import * as api from "./api.js";
import { ranked } from "./arms.js";
import { $, h, say, show } from "./dom.js";
import { worseArms } from "./guardrails.js";
import { byContext } from "./verdict.js";
import { ago, amount, byAge, count, list, moment, plural, reward, short, sum } from "./words.js";

const TOGETHER = 6; // bandits that are read at a time

/** Read the state of every bandit and show them all. */
export async function draw(bandits, archived, broken) {
  const rows = broken.map(({ name, why }) => ({ urgency: 5, row: brokenRow(name, why) }));
  for (let first = 0; first < bandits.length; first += TOGETHER) {
    rows.push(...(await Promise.all(bandits.slice(first, first + TOGETHER).map(read))));
  }
  rows.sort((a, b) => b.urgency - a.urgency); // equals stay in the order of their names
  say($("overview-note"), `${plural(bandits.length, "bandit")}. Those that need somebody come first. Select one to see how it learns.`);
  $("overview-rows").replaceChildren(...rows.map((one) => one.row));
  show($("overview-table"), rows.length > 0);
  $("archived-rows").replaceChildren(...archived.map(archivedRow));
  show($("archived"), archived.length > 0);
}

async function read(bandit) {
  const [state, recent] = await Promise.all([api.state(bandit.name), api.recent(bandit.name, 1)]);
  const found = statuses(bandit, state);
  return { urgency: Math.max(...found.map((one) => one.urgency)), row: row(bandit, state, recent[0], found) };
}

/** What somebody should know of a bandit: [{urgency, kind, text}], the most urgent first. */
export function statuses(bandit, state) {
  const found = [];
  const add = (urgency, kind, text) => found.push({ urgency, kind, text });
  for (const rail of state.guardrails) {
    const worse = worseArms(rail).map((arm) => arm.name);
    if (worse.length) add(4, "bad", `Guardrail ${rail.name}: ${list(worse)} worse`);
  }
  const above = state.arms.filter((arm) => arm.above_cap > 0).length;
  if (above) add(4, "bad", `Paid more than the cap: ${plural(above, "arm")}`);
  if (state.alarm.arms.length) add(3, "bad", `Pay has changed: ${list(state.alarm.arms.slice(0, 3).map((arm) => arm.name))}`);
  if (!state.arms.some((arm) => !arm.retired)) add(3, "bad", "Every arm has retired");
  if (byContext(bandit)) add(0, "quiet", "Chooses by context");
  else if (state.verdict.may_stop) add(2, "good", `You may stop: ${state.verdict.winner} paid most`);
  if (!bandit.floor) add(1, "note", "No floor: no verdict can be given");
  if (!found.length) add(0, "quiet", state.decisions ? "Learning" : "No decision yet");
  return found;
}

function brokenRow(name, why) {
  const title = h("th", { scope: "row" });
  title.textContent = name;
  return h("tr", {}, title, h("td", { colspan: 6 }, chip({ kind: "bad", text: `Not served: ${why}` })));
}

function archivedRow(bandit) {
  const erased = bandit.erase_at === null ? "kept until it is restored" : `to be erased on ${moment(bandit.erase_at)}`;
  const item = h("li");
  item.textContent = `${bandit.name}: archived on ${moment(bandit.archived)}, ${erased}`;
  return item;
}

function chip({ kind, text }) {
  const element = h("span", { class: "chip", "data-kind": kind });
  element.textContent = text;
  return element;
}

function row(bandit, state, last, found) {
  const link = h("a", { href: `#${encodeURIComponent(bandit.name)}` });
  link.textContent = bandit.name;
  const number = (text) => h("td", { class: "number" }, text);
  const playing = state.arms.filter((arm) => !arm.retired);
  const [highest] = ranked(playing);
  const lead = playing.find((arm) => arm.name === state.verdict.leader) ?? highest;
  const leads = lead && lead.estimate !== null ? `${lead.name}: ${reward(amount(lead.estimate), bandit.unit)} per decision${byAge(bandit, lead)}` : "–";
  const arrived = state.arms.reduce((all, arm) => all + arm.observed, 0);
  return h(
    "tr", {},
    h("th", { scope: "row" }, link),
    h("td", {}, ...found.map(chip)),
    h("td", {}, byContext(bandit) ? "depends on the context" : leads),
    h("td", { class: "number fact" }, count(playing.length)),
    number(short(state.decisions)),
    h("td", { class: "fact" }, last ? ago(bandit, last.at, state.at) : "–"),
    number(reward(sum(arrived), bandit.unit)),
  );
}
