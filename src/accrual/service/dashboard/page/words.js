// Write numbers and times for people.

const LOCALE = "en-GB";
const whole = new Intl.NumberFormat(LOCALE, { maximumFractionDigits: 0 });
const compact = new Intl.NumberFormat(LOCALE, { notation: "compact", maximumFractionDigits: 1 });
const UNITS = [
  ["week", 604_800],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
];

export const count = (n) => whole.format(n);
export const short = (n) => (Math.abs(n) < 10_000 ? whole.format(n) : compact.format(n));

/** Write a number with three figures, or with as many as its whole part has. */
export function amount(x) {
  if (x === null || x === undefined) return "–";
  if (Number.isInteger(x) && Math.abs(x) < 10_000) return whole.format(x).replace("-", "−");
  const size = Math.abs(x);
  if (size >= 10_000) return compact.format(x);
  const digits = size === 0 ? 0 : Math.min(Math.max(2 - Math.floor(Math.log10(size)), 0), 4);
  return x
    .toLocaleString(LOCALE, { minimumFractionDigits: digits, maximumFractionDigits: digits })
    .replace("-", "−");
}

/** Write a sum of rewards. */
export const sum = (x) =>
  Math.abs(x) < 100 ? x.toLocaleString(LOCALE, { maximumFractionDigits: Math.abs(x) < 10 ? 2 : 1 }).replace("-", "−") : short(x);

export function percent(share) {
  const p = share * 100;
  if (p > 0 && p < 0.1) return "< 0.1 %";
  return `${p.toLocaleString(LOCALE, { maximumFractionDigits: p < 10 ? 1 : 0 })} %`;
}

/** Return whether a unit is a sign, such as €, and not a word. */
export const isSign = (unit) => unit.length === 1 && !/[\p{L}\p{N}]/u.test(unit);

/** Write a reward with its unit, if it has one: €5.20, or 3 lectures. */
export function reward(text, unit) {
  if (!unit || text === "–") return text;
  return isSign(unit) ? `${unit}${text}` : `${text} ${unit}`;
}

export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

export function list(names) {
  if (names.length < 2) return names.join("");
  return `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

/** Write an arm's features, such as "genre: jazz, minutes: 30"; empty if none is known. */
export function aboutWords(about) {
  const word = (value) => (value === true ? "yes" : value === false ? "no" : value);
  const known = Object.entries(about || {}).filter(([, value]) => value !== null);
  return known.map(([name, value]) => `${name}: ${word(value)}`).join(", ");
}

/** Return the unit for a bandit's ages: the largest of which its window has at least `least`, without a rest if possible. */
export function unitOf(bandit, least = 4) {
  if (bandit.rounds) return { name: "round", size: 1 };
  const enough = UNITS.filter(([, size]) => bandit.window / size >= least);
  const [name, size] = enough.find(([, size]) => bandit.window % size === 0) || enough[0] || UNITS.at(-1);
  return { name, size };
}

/** Write up to which age an arm's estimate counts, if no decision of it has reached the end of the window yet. */
export const byAge = (bandit, arm) =>
  arm.reached !== null && arm.reached < bandit.window * 0.999 ? ` by age ${inUnit(arm.reached, unitOf(bandit))}` : "";

export function inUnit(length, unit) {
  const n = length / unit.size;
  if (n > 0 && n < 1 && unit.name !== "round") return span(length);
  const shown = n >= 100 || Number.isInteger(n) ? count(n) : n.toFixed(1).replace(/\.0$/, "");
  return `${shown} ${unit.name}${shown === "1" ? "" : "s"}`;
}

/** Write a span of seconds in the largest unit of which it has at least two. */
export function span(seconds) {
  if (seconds < 1) return "less than a second";
  const [name, size] = UNITS.find(([, size]) => seconds >= size * 2) || UNITS.at(-1);
  return plural(Math.round(seconds / size), name);
}

/** Write a moment, given in seconds since 1970, in this machine's time zone. */
export const moment = (at) =>
  new Date(at * 1000).toLocaleString(LOCALE, { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" });

/** Write a day, given in seconds since 1970. */
export const day = (at) => new Date(at * 1000).toLocaleDateString(LOCALE, { day: "numeric", month: "short" });

export function ago(bandit, at, now) {
  if (bandit.rounds) return `round ${count(at)}`;
  const seconds = Math.max(now - at, 0);
  return seconds < 1 ? "just now" : `${span(seconds)} ago`;
}
