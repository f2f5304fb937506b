// Recent decisions, and why each chose its arm.

import { explain } from "./api.js";
import { $, h, say, show } from "./dom.js";
import { ago, amount, count, list, plural } from "./words.js";

export const LIMIT = 12;
const FEW = 8; // arms of an explanation that are shown at first

// Plainer words for the terms of the policies' indices. Other terms are shown as they are.
const PLAIN = {
  "estimate": "Reward per decision",
  "expected total": "Expected in all",
  "best expected total": "Highest expected in all",
  "expected total in this context": "Expected in this context",
  "standard deviation of that": "How uncertain that is",
  "full decisions that it stands on": "Evidence, counted in whole decisions",
  "decisions": "Decisions by then",
  "mean of closed decisions": "Mean of closed decisions",
  "best mean": "Best mean",
  "closed decisions": "Closed decisions",
  "its own, without the other arms": "By its own decisions alone",
  "best estimate": "Highest estimate",
  "bonus": "Bonus for being little known",
  "expected from what is known about it": "Expected from what is known",
  "may still come": "May still come",
  "observed per decision": "Arrived per decision",
  "mean of finished groups": "Mean of what has arrived",
  "groups not seen, at their cap": "Not seen yet, at its most",
};
const DRAWS = ["AgeTS", "AgeLinTS", "LinTS", "ThompsonSampling"]; // policies whose scores are drawn at random
const MERITS = ["expected total", "expected total in this context", "estimate", "mean of closed decisions", "mean of finished decisions", "mean of finished groups", "observed per decision"];

// Terms that need the policy's paper to be understood.
const UNSAID = ["decisions that pay 0 or the cap and tell as much", "deviation of a total"];

const plain = (name) => PLAIN[name] || name[0].toUpperCase() + name.slice(1);

const rows = new Map(); // decision's id -> its item of the list
let bandit = null;
let selected = null;
let touched = false; // whether the user has selected a decision

export function forget(next) {
  bandit = next;
  selected = null;
  touched = false;
  rows.clear();
  $("recent").replaceChildren();
  $("why").replaceChildren(h("p", { class: "wait" }, "No decision has been made yet."));
}

export function draw(decisions, now, palette) {
  const host = $("recent");
  const inUse = host.matches(":hover") || host.contains(document.activeElement);
  show($("held"), inUse && rows.size > 0);
  if (!inUse || !rows.size) {
    const ids = new Set(decisions.map((one) => one.id));
    for (const [id, row] of rows) {
      if (ids.has(id)) continue;
      row.item.remove();
      rows.delete(id);
    }
    decisions.forEach((one, i) => {
      if (!rows.has(one.id)) rows.set(one.id, make(one));
      const { item } = rows.get(one.id);
      if (host.children[i] !== item) host.insertBefore(item, host.children[i] || null);
    });
  }
  for (const { when, swatch, decision } of rows.values()) {
    say(when, ago(bandit, decision.at, now));
    swatch.dataset.slot = palette.of(decision.arm);
  }
  if (!touched && selected === null && decisions.length) select(decisions[0].id);
}

function make(decision) {
  const swatch = h("i", { class: "swatch" });
  const name = h("span", { class: "arm-name" });
  name.textContent = decision.arm;
  const when = h("span", { class: "when" });
  const button = h(
    "button",
    { type: "button", "aria-pressed": "false", onclick: () => { touched = true; select(decision.id); } },
    h("span", { class: "id" }, `#${count(decision.id)}`), swatch, name, when,
  );
  return { item: h("li", {}, button), button, when, swatch, decision };
}

async function select(id) {
  const of = bandit;
  selected = id;
  for (const [other, { button }] of rows) button.setAttribute("aria-pressed", String(other === id));
  try {
    const found = await explain(of.name, id);
    if (selected === id && bandit === of) $("why").replaceChildren(...explanation(found));
  } catch (error) {
    if (selected === id && bandit === of)
      $("why").replaceChildren(h("p", { class: "wait" }, `No reason can be shown: ${error.message}`));
  }
}

/** Write an explanation for people. */
function explanation(found) {
  const title = h("h3");
  title.textContent = `Why #${count(found.id)} got ${found.arm}`;
  const parts = [title, ...[...contextWords(found.context), ...sentences(found)].map((text) => h("p", {}, text))];
  if (!found.first && found.reasons.length) parts.push(...scores(found));
  return parts;
}

/** Write the decision's context in words. */
function contextWords(context) {
  const known = Object.entries(context || {}).map(([name, value]) => `${name}: ${value === null ? "not known" : value}`);
  return known.length ? [`Its context was ${known.join(", ")}.`] : [];
}

function sentences(found) {
  if (found.first) return ["Nothing was known about this arm yet. Such arms are tried in turn."];
  if (found.drawn) return [`Drawn at random: about 1 decision in ${count(1 / bandit.floor)} is, so that arms can be compared. The policy itself would have chosen another arm.`];
  const merit = MERITS.find((term) => found.reasons.some((reason) => reason.terms[term] !== undefined));
  const chosen = found.reasons.find((reason) => reason.arm === found.arm);
  const said = [];
  const worth = (reason) => reason.terms[merit] ?? -Infinity;
  const meritWords = (reason) => {
    const [so, all] = [amount(reason.estimate), amount(worth(reason))];
    if (merit === "estimate") return `${all} per decision`;
    if (merit !== "expected total") return `${plain(merit).toLowerCase()} ${all}`;
    return so === all ? `${all} per decision` : `${so} per decision at the ages reached so far, ${all} expected in all`;
  };
  if (!merit && found.reasons.length === 1) said.push("It was the only arm in play.");
  else if (!merit && found.reasons.every((reason) => Object.keys(reason.terms).join() === "decisions")) {
    said.push("No arm could be judged yet, so the one with the fewest decisions was next.");
  }
  if (merit && chosen && Number.isFinite(worth(chosen))) {
    const others = found.reasons.filter((reason) => reason !== chosen && Number.isFinite(worth(reason)));
    const best = others.reduce((a, b) => (a && worth(a) >= worth(b) ? a : b), null);
    if (!best || worth(chosen) >= worth(best)) {
      said.push(
        `${found.reasons.length === 1 ? "It was the only arm in play" : "It looked best"}: ${meritWords(chosen)}` +
          (best ? `, against ${amount(worth(best))} for the next, ${best.arm}.` : "."),
      );
    } else {
      const n = chosen.terms["decisions"] ?? chosen.terms["closed decisions"];
      said.push(
        `It did not look best: ${meritWords(chosen)}, against ${amount(worth(best))} for ${best.arm}. ` +
          `But ${n === undefined ? "" : `after ${plural(n, "decision")} of it `}that was not certain, ` +
          `and the policy thought one more try worth its possible cost.`,
      );
    }
  }
  const untried = found.reasons.filter((reason) => reason.index === null && reason.arm !== found.arm);
  if (untried.length) said.push(`Nothing was known yet about: ${list(untried.slice(0, 5).map((reason) => reason.arm))}.`);
  if (!found.exact) said.push("The state of that moment cannot be computed again exactly. These figures may differ a little from those behind the decision.");
  return said;
}

function scores(found) {
  const order = [...found.reasons].sort(
    (a, b) => (b.arm === found.arm) - (a.arm === found.arm) || (b.index ?? -Infinity) - (a.index ?? -Infinity),
  );
  // The estimate by which the policy chose, if it says one: the sentence above the table names the same number.
  const value = (reason, name) => reason.terms[name] ?? (name === "estimate" ? reason.estimate : undefined);
  const own = order.some((reason) => reason.estimate !== null) ? ["estimate"] : [];
  const twice = order.every((reason) => amount(reason.estimate) === amount(reason.terms["expected total"]));
  const names = [...new Set([...own, ...order.flatMap((reason) => Object.keys(reason.terms))])]
    .filter((name) => !UNSAID.includes(name) && (name !== "expected total" || !twice));
  const same = names.filter((name) => order.length > 1 && new Set(order.map((reason) => value(reason, name))).size === 1);
  const columns = names.filter((name) => !same.includes(name));
  const number = (x) => h("td", { class: "number" }, amount(x));
  const lines = order.map((reason, i) => {
    const name = h("span", { class: "arm-name" });
    name.textContent = reason.arm;
    const mine = reason.arm === found.arm;
    return h(
      "tr", { class: mine ? "chosen" : null, hidden: i >= FEW },
      h("th", { scope: "row" }, name, mine ? h("span", { class: "tag" }, "chosen") : null),
      number(reason.index), ...columns.map((column) => number(value(reason, column))),
    );
  });
  const head = h("tr", {}, h("th", { scope: "col" }, "Arm"),
    ...["Priority", ...columns.map(plain)].map((text) => h("th", { scope: "col", class: "number" }, text)));
  const table = h("table", { class: "scores" }, h("thead", {}, head), h("tbody", {}, ...lines));
  const meaning = DRAWS.includes(bandit.policy.split("(")[0])
    ? "it is drawn at random around what an arm seems to earn, and varies more the less is known about the arm."
    : "it grows with what an arm seems to earn, and with how little is known about the arm. Only the order of priorities counts. They may be negative.";
  const parts = [h("p", { class: "explains" }, `What was known about every arm. The policy chooses the highest priority: ${meaning}`)];
  parts.push(h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Priorities of the arms" }, table));
  if (lines.length > FEW) {
    const more = h("button", { type: "button", class: "quiet" }, `Show all ${count(lines.length)} arms`);
    more.addEventListener("click", () => { lines.forEach((line) => show(line, true)); more.remove(); });
    parts.push(more);
  }
  const common = same.filter((name) => value(order[0], name) !== null)
    .map((name) => `${plain(name).toLowerCase()} ${amount(value(order[0], name))}`);
  if (common.length) parts.push(h("p", { class: "hint" }, `For every arm: ${common.join(", ")}.`));
  return parts;
}
