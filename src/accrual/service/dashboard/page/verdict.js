// The answer to "may I stop?": the service's verdict in words, and the leader's lead over time as a small picture.

import { $, s, say, show } from "./dom.js";
import { amount, count, list, plural } from "./words.js";

const WIDTH = 520;
const HEIGHT = 120;

/** What may be said of the arms: [headline, more]. Every sentence rests on the service's verdict alone. */
export function answer(state, inUnit) {
  const { verdict } = state;
  const playing = state.arms.filter((arm) => !arm.retired);
  if (!state.decisions) return ["No decision yet", "The first figures appear here with the first decisions."];
  if (!playing.length) return ["Every arm has retired", "Add one before deciding again."];
  if (playing.length === 1) return [`${playing[0].name} is the only arm in play`, "There is nothing to compare it with."];
  if (verdict.reason) return ["No verdict can be given", `${upper(verdict.sentence.replace(/^No verdict can be given: /, ""))} ${highest(playing)}`];
  if (verdict.winner) {
    const stop = /^You may stop: /;
    const head = stop.test(verdict.sentence) ? "You may stop: " : "Arms have changed: ";
    return [`${head}${verdict.winner} paid most`, verdict.sentence.replace(stop, "")];
  }
  if (verdict.changed.length) return ["Arms have changed places", upper(verdict.sentence.replace(/^No verdict: /, ""))];
  if (!verdict.scored) return ["No verdict yet", `${upper(verdict.sentence.replace(/^No verdict yet: /, ""))} ${highest(playing)}`];
  const parts = [`${some(verdict.contenders)} may still be the best, by ${plural(verdict.scored, "closed decision")}.`];
  if (verdict.retirable.length) parts.push(`${some(verdict.retirable)} may be retired: another arm was shown to pay more on average.`);
  if (verdict.loss_if_stopped !== null) parts.push(`By these ${verdict.leader} leads; stopping with it now would lose about ${amount(verdict.loss_if_stopped)} per decision.`);
  if (verdict.decisions_to_go !== null) {
    const rough = (n) => Number(n.toPrecision(2)); // more figures would promise more than is known
    const [least, most] = verdict.decisions_to_go.map((n) => (n === null ? null : rough(n)));
    const [soon, late] = (verdict.time_to_go ?? []).map((n) => (n === null ? null : inUnit(rough(n))));
    const time = soon === undefined ? "" : ` (${most === null ? soon : `${soon} to ${late}`})`;
    parts.push(most === null
      ? `If arms pay as they have, ${plural(least, "more decision")} or many more${time} must close to tell: a guess.`
      : `If arms pay as they have, ${count(least)} to ${plural(most, "more decision")}${time} must close to tell: a guess.`);
  }
  return ["No verdict yet", [...parts, highest(playing)].join(" ")];
}

/** The arm with the highest estimate: for looking, not for stopping. */
function highest(playing) {
  const [lead] = playing.filter((arm) => arm.estimate !== null).sort((a, b) => b.estimate - a.estimate);
  if (!lead) return "No arm has an estimate yet.";
  const [low, high] = lead.interval.map(amount);
  return `${lead.name} has the highest estimate so far, ${amount(lead.estimate)} per decision (between ${low} and ${high} at one look): not a reason to stop.`;
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
  say(figure.querySelector("figcaption"), `How much more ${pair.first} pays than ${pair.second}: between ${amount(pair.interval[0])} and ${amount(pair.interval[1])} now, after ${plural(verdict.scored, "closed decision")}. The line is no difference; the band may be looked at as often as one likes.`);
}

/** What should be looked into before anything is believed. */
export const warnings = (state) => state.verdict.warnings.map((text) => `${upper(text)}.`).join(" ");

const upper = (text) => text.charAt(0).toUpperCase() + text.slice(1);
const some = (names) => list(names.length > 4 ? [...names.slice(0, 3), `${count(names.length - 3)} more`] : names);
