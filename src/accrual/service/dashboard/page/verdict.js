// The verdict box: may I stop, who leads, and what to do now. It rests on the fields of the service's state alone.

import * as api from "./api.js";
import { $, h, s, say, show, ticks } from "./dom.js";
import { amount, byAge, count, day, percent, plural } from "./words.js";

const RANGES = 3; // ranges of decisions that a text names at most
const OPEN = 50; // a range whose end is this many times its beginning is said without its end
const COMMANDS = 6; // commands that are written out; more arms are named by their number
const HEIGHT = 170;
const LEFT = 58; // pixels for the numbers of the vertical axis
const BELOW = 34; // pixels for the horizontal axis and its name

/** Whether a bandit's policy chooses by context, so that no single arm need be best. */
export const byContext = (bandit) => Boolean(bandit.features) && /Lin(TS|UCB)$/.test(bandit.policy.split("(")[0]); // the linear policies

const STATES = {
  stop: "You may stop",
  wait: "Not yet",
  done: "Done",
  unknown: "Cannot be told",
  depends: "Depends on the context",
  changed: "Something has changed",
};

/** An arm's name within a sentence, set off from it. */
const arm = (name) => ({ arm: name });
const arms = (names) => {
  const shown = names.length > 4 ? names.slice(0, 3) : names;
  const parts = shown.flatMap((name, i) => [i === 0 ? "" : i === names.length - 1 ? " and " : ", ", arm(name)]);
  return names.length > shown.length ? [...parts, ` and ${count(names.length - shown.length)} more`] : parts;
};

/** Show the box. `worth` is what contexts are worth, null while that is not known. */
export function draw(state, bandit, worth, inUnit) {
  const found = answer(state, bandit, worth, inUnit);
  const box = $("verdict-box");
  const text = JSON.stringify(found);
  if (box.dataset.shown !== text) {
    box.dataset.shown = text; // otherwise nothing is new, and the text that a reader has selected stays
    box.dataset.kind = found.kind;
    say($("verdict-state"), STATES[found.kind]);
    $("headline").replaceChildren(...rich(found.head));
    $("todo-text").replaceChildren(...rich(found.todo));
    $("todo-commands").replaceChildren(...commands(found));
    $("verdict").replaceChildren(...rich(found.why));
    say($("verdict-warnings"), state.verdict.warnings.map((one) => `${upper(one)}.`).join(" "));
    show($("verdict-warnings"), state.verdict.warnings.length > 0);
  }
  drawLead(state, found.kind !== "depends");
}

/** What is said: {kind, head, todo, retire, floor, why}. Texts are lists of strings and arms. */
export function answer(state, bandit, worth, inUnit) {
  const { verdict } = state;
  const playing = state.arms.filter((one) => !one.retired);
  const wait = (head, todo, why = []) => ({ kind: "wait", head, todo, why });
  if (!state.decisions) return wait(["No decision yet"], ["Ask for decisions. The first figures appear here with them."]);
  if (!playing.length) return { kind: "unknown", head: ["Every arm has retired"], todo: ["Add an arm: until then every request for a decision is refused."], why: [] };
  if (playing.length === 1) return { kind: "done", head: [arm(playing[0].name), " is the only arm in play"], todo: ["Nothing: it gets every decision."], why: [] };
  if (byContext(bandit)) return ofContexts(bandit, worth);
  if (verdict.outcome === "cannot_tell") return cannotTell(state, bandit, playing);
  if (verdict.outcome === "winner") return won(state, playing);
  if (verdict.changed.length) return changedPlaces(verdict);
  return undecided(state, bandit, inUnit, playing);
}

function ofContexts(bandit, worth) {
  const kind = "depends";
  if (!worth) return { kind, head: ["No single arm need be best for everyone"], todo: ["Keep going. What choosing by context is worth is being computed from the log."], why: [] };
  if (!worth.more) {
    return { kind, head: ["What choosing by context is worth cannot be told yet"], floor: !bandit.floor, why: [worth.sentence],
      todo: [bandit.floor ? "Keep going until more decisions have closed." : "Make a bandit with a floor, so that a share of the decisions is drawn at random and can be compared:"] };
  }
  const { value, low, high } = worth.more;
  const range = `${amount(low)} to ${amount(high)}`;
  const winners = worth.winners.flatMap((one) => [" Where ", one.part, ": ", arm(one.arm), ` pays ${amount(one.more.value)} more than `, arm(one.than), "."]);
  const why = [worth.sentence, ...winners];
  if (low > 0) return { kind, head: [`Choosing by context earns ${amount(value)} more per decision (${range})`], why, todo: ["Keep choosing by context: no single arm does as well for everyone."] };
  if (high < 0) return { kind, head: ["Choosing by context earns less than ", arm(worth.single), " for everyone"], why, todo: ["Make a bandit without features, or with fewer."] };
  return { kind, head: [`Choosing by context may earn more or less (${range} per decision)`], why, todo: ["Keep going. More closed decisions make this range narrower."] };
}

function cannotTell(state, bandit, playing) {
  const why = [`${upper(state.verdict.reason)}. `, uncounted(state.verdict), ...highest(bandit, playing)];
  const todo = bandit.floor
    ? ["Keep going, or make a new bandit if this does not change."]
    : ["Make a bandit with a floor, so that a share of the decisions is drawn at random and arms can be compared:"];
  return { kind: "unknown", head: ["No verdict can be given"], todo, floor: !bandit.floor, why };
}

function won(state, playing) {
  const { verdict } = state;
  const others = playing.map((one) => one.name).filter((name) => name !== verdict.winner);
  const losers = new Map(); // range of decisions -> arms
  for (const { ahead, second } of verdict.pairs) losers.set(between(ahead), [...(losers.get(between(ahead)) ?? []), second]);
  const parts = [...losers].map(([range, names]) => (losers.size === 1 ? [range] : ["than ", ...arms(names), ` ${range}`]));
  const ranges = parts.length > RANGES ? ["over a range of decisions for each"] : parts.flatMap((part, i) => (i ? ["; ", ...part] : part));
  const why = [arm(verdict.winner), " paid more on average than every other arm in play: ", ...ranges, `. ${chance(verdict)}`];
  if (verdict.may_stop) {
    return { kind: "stop", head: [arm(verdict.winner), " paid most"], todo: ["Give all decisions to ", arm(verdict.winner), `: retire the other${others.length > 1 ? "s" : ""}.`], retire: others, why };
  }
  const changed = state.alarm.arms.filter((one) => playing.some((other) => other.name === one.name));
  const since = changed.flatMap((one, i) => [i ? ", " : "", arm(one.name), ` (found at decision ${count(one.decision)})`]);
  return {
    kind: "changed", head: [arm(verdict.winner), " paid most, but pay has changed since"], why: [...why, " Since then these arms pay differently: ", ...since, "."],
    todo: ["Do not stop by this verdict. Begin anew: a new bandit compares the arms as they are now."],
  };
}

function changedPlaces(verdict) {
  const swaps = verdict.pairs.filter((pair) => pair.ahead && pair.behind).slice(0, RANGES).flatMap(({ first, second, ahead, behind }) => {
    const [[one, earlier], [other, later]] = [[first, ahead], [second, behind]].sort((a, b) => a[1][1] - b[1][1]);
    return [" On average ", arm(one), " paid more than ", arm(other), ` ${between(earlier)}, and less ${between(later)}.`];
  });
  return {
    kind: "changed", head: ["Arms have changed places"],
    todo: ["Do not stop: which arm pays most differs from time to time. A policy that forgets follows such changes, such as AgePrior(half_life=10000)."],
    why: [...arms(verdict.changed), " were each shown to pay more than another arm over some decisions, and less over others.", ...swaps, ` ${chance(verdict)}`],
  };
}

function undecided(state, bandit, inUnit, playing) {
  const { verdict } = state;
  const anew = verdict.began > 0 ? `The comparison began anew at decision ${count(verdict.began)}, when an arm was added. What was found before is kept. ` : "";
  if (!verdict.scored) {
    return { kind: "wait", head: ["No verdict yet"], todo: ["Keep going. Arms are compared as the windows of decisions end, and none has ended yet that counts."], why: [anew, uncounted(verdict), ...highest(bandit, playing)] };
  }
  const head = verdict.leader ? [arm(verdict.leader), " leads, by what is known so far"] : ["No verdict yet"];
  const why = [anew, ...arms(verdict.contenders), ` may still be the best, by ${plural(verdict.scored, "decision")} whose window has ended.`];
  if (verdict.loss_if_stopped !== null && verdict.leader) why.push(` If you stopped now and always chose the leader, a decision would lose about ${amount(verdict.loss_if_stopped)} on average.`);
  why.push(" ", uncounted(verdict));
  return { kind: "wait", head, todo: [`Keep going. ${toGo(state, inUnit)}`, ...retirable(verdict)], retire: verdict.retirable, why };
}

const retirable = ({ retirable: names }) => (names.length ? [" You may retire ", ...arms(names), " now: another arm was shown to pay more."] : []);

/** How long it takes, as a range; an honest word where that is not known. */
function toGo({ verdict, at }, inUnit) {
  if (verdict.decisions_to_go === null) return "How long it takes cannot be said yet.";
  const rough = (n) => (n === null ? null : Number(n.toPrecision(2))); // more figures would promise more than is known
  const [least, most] = verdict.decisions_to_go.map(rough);
  const [soon, late] = (verdict.time_to_go ?? [null, null]).map(rough);
  if (most === null || most > OPEN * least) return `It takes at least about ${plural(least, "more decision")}${soon === null ? "" : ` (${inUnit(soon)})`}, and may take much longer if arms pay nearly the same.`;
  const dates = soon === null || late === null || at < 1e9 ? "" : `, until about ${day(at + soon)} to ${day(at + late)}`;
  const time = soon === null || late === null ? "" : ` (${inUnit(soon)} to ${inUnit(late)})`;
  return `If arms go on paying as they have, ${count(least)} to ${plural(most, "more decision")} must end${time}${dates}. This is a guess.`;
}

/** The arm with the highest estimate, which is no reason to stop. */
function highest(bandit, playing) {
  const [lead] = playing.filter((one) => one.estimate !== null).sort((a, b) => b.estimate - a.estimate);
  if (!lead) return [];
  const [low, high] = lead.interval.map(amount);
  return [" So far ", arm(lead.name), ` has the highest estimate, ${amount(lead.estimate)} per decision${byAge(bandit, lead)} (about 95 % for one look: ${low} to ${high}). That is not a reason to stop.`];
}

const uncounted = (verdict) => (verdict.skipped ? `Not counted: ${plural(verdict.skipped, "ended decision")} without a recorded propensity (the chance with which its arm was chosen), or of a worker that did not know the newest arm yet.` : "");

/** What a person with an admin key can type to do it. */
function commands({ retire = [], floor = false }) {
  const name = decodeURIComponent(location.hash.slice(1)) || $("bandit").value;
  const key = api.key.get() ? ` -H "Authorization: Bearer $KEY"` : "";
  const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const lines = retire.slice(0, COMMANDS).map((one) =>
    `curl -X POST ${quoted(`${location.origin}/v1/bandits/${encodeURIComponent(name)}/arms/retire`)}${key} -H 'Content-Type: application/json' -d ${quoted(JSON.stringify({ name: one }))}`);
  if (floor) lines.push(`accrual bandits copy ${quoted(name)} ${quoted(`${name}-2`)} --floor 0.1`);
  const alone = floor ? [h("p", { class: "hint" }, "With SQLite, stop the service first: only one process at a time may write to the file.")] : [];
  const more = retire.length > COMMANDS ? [h("p", { class: "hint" }, `and ${count(retire.length - COMMANDS)} more arms, in the same way`)] : [];
  return lines.length ? [h("pre", { tabindex: "0" }, h("code", {}, lines.join("\n"))), ...more, ...alone] : [];
}

/** Draw how much more the leader pays than its closest rival, as a band that narrows, with both axes. */
function drawLead(state, wanted) {
  const { verdict } = state;
  const pair = [...verdict.pairs].sort((a, b) => a.interval[0] - b.interval[0])[0];
  const figure = $("sequence");
  const width = (ends) => ends.at(-1) - ends.at(-2);
  const told = wanted && Boolean(pair?.sequence.length) && width(pair.interval) < width(pair.sequence[0]); // else it says nothing yet
  show(figure, told);
  if (!told) return;
  const points = [...pair.sequence, [verdict.scored, ...pair.interval]];
  const settled = points.slice(Math.floor(points.length / 4)); // the first intervals are too wide to show
  const marks = ticks(Math.min(0, ...settled.map((point) => point[1])), Math.max(0, ...settled.map((point) => point[2])), 4);
  const [low, high] = [marks[0], marks.at(-1)];
  const wide = Math.max(figure.clientWidth, 260);
  const x = (scored) => LEFT + ((wide - LEFT - 12) * scored) / verdict.scored;
  const y = (value) => 8 + (HEIGHT - BELOW - 8) * (1 - (Math.min(Math.max(value, low), high) - low) / (high - low || 1));
  const at = (side) => points.map((point) => `${x(point[0])},${y(point[side])}`);
  const words = (text, place) => { const element = s("text", place); element.textContent = text; return element; };
  const plot = s("svg", { viewBox: `0 0 ${wide} ${HEIGHT}`, height: HEIGHT, class: "sequence", role: "img", "aria-label": `The lead of ${pair.first} over ${pair.second}` });
  plot.append(
    ...marks.map((mark) => s("line", { x1: LEFT, x2: wide - 12, y1: y(mark), y2: y(mark), class: mark === 0 ? "zero" : "grid" })),
    ...marks.map((mark) => words(mark === 0 ? "0" : `${mark > 0 ? "+" : ""}${amount(mark)}`, { x: LEFT - 8, y: y(mark) + 4, "text-anchor": "end" })),
    s("polygon", { points: [...at(2), ...at(1).reverse()].join(" "), class: "band" }),
    ...ticks(0, verdict.scored, 4).filter((mark) => mark <= verdict.scored).map((mark) => words(count(mark), { x: x(mark), y: HEIGHT - BELOW + 16, "text-anchor": mark ? "middle" : "start" })),
    words("decisions whose window has ended", { x: wide - 12, y: HEIGHT - 3, "text-anchor": "end" }),
  );
  figure.querySelector("svg")?.remove();
  figure.prepend(plot);
  figure.querySelector("figcaption").replaceChildren(...rich([
    "How much more ", arm(pair.first), " pays than ", arm(pair.second), `: ${amount(pair.interval[0])} to ${amount(pair.interval[1])} now. Above the line of 0, `, arm(pair.first), " pays more. The band holds however often you look.",
  ]));
}

const rich = (parts) => parts.map((part) => {
  if (typeof part === "string") return document.createTextNode(part);
  const name = h("b", { class: "named" });
  name.textContent = part.arm;
  return name;
});

const between = ([first, last]) => `from decision ${count(first)} to ${count(last)}`;
const chance = (verdict) => `The chance that such a statement is ever wrong is at most ${percent(verdict.error)}, in the whole life of the bandit and however often you look.`;
const upper = (text) => text.charAt(0).toUpperCase() + text.slice(1);
