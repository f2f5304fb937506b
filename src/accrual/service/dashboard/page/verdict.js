// The answer to "may I stop?": the service's verdict in words, and the leader's lead over time as a small chart.

import { $, s, say, show } from "./dom.js";
import { amount, count, list, percent, plural } from "./words.js";

const RANGES = 3; // ranges of decisions that a text names at most
const WIDTH = 520;
const HEIGHT = 120;

/** What may be said of the arms: [headline, more]. It rests on the fields of the service's verdict and alarm alone. */
export function answer(state, inUnit) {
  const { verdict } = state;
  const playing = state.arms.filter((arm) => !arm.retired);
  if (!state.decisions) return ["No decision yet", "The first figures appear here with the first decisions."];
  if (!playing.length) return ["Every arm has retired", "Add an arm before you decide again."];
  if (playing.length === 1) return [`${playing[0].name} is the only arm in play`, "There is nothing to compare it with."];
  const uncounted = verdict.skipped ? `Not counted: ${plural(verdict.skipped, "closed decision")} without a recorded propensity, or of a worker that did not know the newest arm yet.` : "";
  if (verdict.outcome === "cannot_tell") return ["No verdict can be given", sentences(`${upper(verdict.reason)}.`, uncounted, highest(playing))];
  if (verdict.outcome === "winner") return [`${verdict.may_stop ? "You may stop" : "Arms have changed"}: ${verdict.winner} paid most`, won(state, playing)];
  if (verdict.changed.length) return ["Arms have changed places", sentences(...swapped(verdict), chance(verdict))];
  if (!verdict.scored) return ["No verdict yet", sentences("No decision with a recorded propensity, made among the arms now in play, has closed yet.", uncounted, highest(playing))];
  return ["No verdict yet", sentences(...undecided(verdict, inUnit), highest(playing))];
}

/** Over which decisions the winner paid more than each other arm, and whether that may have changed since. */
function won(state, playing) {
  const { verdict } = state;
  const losers = new Map(); // range of decisions -> arms
  for (const { ahead, second } of verdict.pairs) losers.set(between(ahead), [...(losers.get(between(ahead)) ?? []), second]);
  const parts = [...losers].map(([range, names]) => (losers.size === 1 ? range : `than ${some(names)} ${range}`));
  const ranges = parts.length > RANGES ? "over a range of decisions for each" : list(parts);
  const changed = state.alarm.arms.filter((one) => playing.some((arm) => arm.name === one.name));
  return sentences(
    `${verdict.winner} paid more on average than every other arm in play: ${ranges}.`,
    verdict.may_stop ? "" : `That may no longer hold. Since then these arms pay differently: ${list(changed.map((arm) => `${arm.name} (found at decision ${count(arm.decision)})`))}.`,
    chance(verdict),
  );
}

/** Which arms have changed places, and when, as far as the leader's pairs tell. */
function swapped(verdict) {
  const pairs = verdict.pairs.filter((pair) => pair.ahead && pair.behind);
  return [
    `${some(verdict.changed)} have changed places: each was shown to pay more than another arm over some decisions, and less over others.`,
    ...pairs.slice(0, RANGES).map(({ first, second, ahead, behind }) => {
      const [[one, earlier], [other, later]] = [[first, ahead], [second, behind]].sort((a, b) => a[1][1] - b[1][1]);
      return `On average ${one} paid more than ${other} ${between(earlier)}, and less ${between(later)}.`;
    }),
  ];
}

/** Which arms may still be the best, and what it takes to tell. */
function undecided(verdict, inUnit) {
  const parts = [`${some(verdict.contenders)} may still be the best, by ${plural(verdict.scored, "closed decision")}.`];
  if (verdict.retirable.length) parts.push(`${some(verdict.retirable)} may be retired: another arm was shown to pay more on average.`);
  if (verdict.loss_if_stopped !== null) parts.push(`${verdict.leader} leads. If you stopped now and always chose it, a decision would lose about ${amount(verdict.loss_if_stopped)}.`);
  if (verdict.decisions_to_go === null) return parts;
  const rough = (n) => Number(n.toPrecision(2)); // more figures would promise more than is known
  const [least, most] = verdict.decisions_to_go.map((n) => (n === null ? null : rough(n)));
  const [soon, late] = (verdict.time_to_go ?? []).map((n) => (n === null ? null : inUnit(rough(n))));
  const time = soon === undefined ? "" : ` (${most === null ? soon : `${soon} to ${late}`})`;
  const more = most === null ? `${plural(least, "more decision")} or many more` : `${count(least)} to ${plural(most, "more decision")}`;
  return [...parts, `A guess: if arms go on paying as they have, ${more}${time} must close before a verdict.`];
}

/** The arm with the highest estimate, which is no reason to stop. */
function highest(playing) {
  const [lead] = playing.filter((arm) => arm.estimate !== null).sort((a, b) => b.estimate - a.estimate);
  if (!lead) return "No arm has an estimate yet.";
  const [low, high] = lead.interval.map(amount);
  return `${lead.name} has the highest estimate so far, ${amount(lead.estimate)} per decision (interval for one look: ${low} to ${high}). That is not a reason to stop.`;
}

/** Draw the interval of the leader's lead over its closest rival, from the first checkpoint until now. */
export function draw(state) {
  const { verdict } = state;
  const pair = [...verdict.pairs].sort((a, b) => a.interval[0] - b.interval[0])[0];
  const figure = $("sequence");
  const width = (ends) => ends.at(-1) - ends.at(-2);
  const told = Boolean(pair?.sequence.length) && width(pair.interval) < width(pair.sequence[0]); // else it says nothing yet
  show(figure, told);
  if (!told) return;
  const points = [...pair.sequence, [verdict.scored, ...pair.interval]];
  const settled = points.slice(Math.floor(points.length / 4)); // the first intervals are too wide to show
  const low = Math.min(0, ...settled.map((point) => point[1]));
  const high = Math.max(0, ...settled.map((point) => point[2]));
  const x = (scored) => (WIDTH * scored) / verdict.scored;
  const y = (value) => HEIGHT * (1 - (Math.min(Math.max(value, low), high) - low) / (high - low || 1));
  const top = points.map((point) => `${x(point[0])},${y(point[2])}`);
  const bottom = points.map((point) => `${x(point[0])},${y(point[1])}`).reverse();
  const plot = s("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", class: "sequence", role: "img", "aria-label": `The lead of ${pair.first} over ${pair.second}` });
  plot.append(
    s("polygon", { points: [...top, ...bottom].join(" "), class: "band" }),
    s("line", { x1: 0, x2: WIDTH, y1: y(0), y2: y(0), class: "zero" }),
  );
  figure.querySelector("svg")?.remove();
  figure.prepend(plot);
  say(figure.querySelector("figcaption"), `How much more ${pair.first} pays than ${pair.second}: between ${amount(pair.interval[0])} and ${amount(pair.interval[1])} now, after ${plural(verdict.scored, "closed decision")}. The line marks no difference. The band holds however often you look.`);
}

/** What to look into before you trust the verdict. */
export const warnings = (state) => state.verdict.warnings.map((text) => `${upper(text)}.`).join(" ");

const between = ([first, last]) => `from decision ${count(first)} to ${count(last)}`;
const chance = (verdict) => `The chance that such a statement is ever wrong is at most ${percent(verdict.error)}, in the whole life of the bandit and however often you look.`;
const sentences = (...parts) => parts.filter(Boolean).join(" ");
const upper = (text) => text.charAt(0).toUpperCase() + text.slice(1);
const some = (names) => list(names.length > 4 ? [...names.slice(0, 3), `${count(names.length - 3)} more`] : names);
