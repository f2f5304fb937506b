// The log of a bandit as a CSV file that `accrual fit` reads: a row for each piece, with its decision. It is read page
// by page with the key of this tab.

import * as api from "./api.js";
import { $, h, say } from "./dom.js";
import { count } from "./words.js";

const PAGE = 10_000; // events of one request
const MOST = 1_000_000; // events of a file: all of them are held in memory

// A text that begins like a formula gets an apostrophe, because a spreadsheet would run it. It may begin with spaces,
// or be in full-width letters.
const FORMULA = /^([\s\u0000-\u001f]*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n])/;
const cell = (value) => {
  let text = value === undefined || value === null ? "" : String(value);
  if (typeof value === "string" && FORMULA.test(text)) text = `'${text}`;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};
const line = (values) => `${values.map(cell).join(",")}\r\n`;

/** Read the whole log of a bandit and hand it to the browser as a file. Pieces of guardrails are left out. */
export async function download({ name, floor }) {
  const { arms, features } = await api.state(name);
  const about = new Map(arms.map((arm) => [arm.name, arm.about || {}]));
  const columns = [ // of each its name, and what a decision and its piece have there
    ["id", (made) => made.decision], ["arm", (made) => made.arm], ["at", (made) => made.at],
    ["value", (made, piece) => piece?.value], ["age", (made, piece) => piece?.age],
    ...(floor ? [["propensity", (made) => made.propensity]] : []),
    ...features.map((feature) => [feature.name, (made) => made.context?.[feature.name]]),
    ...Object.keys(arms[0].about || {}).map((feature) => [`about_${feature}`, (made) => about.get(made.arm)[feature]]),
  ];
  const row = (made, piece) => line(columns.map(([, value]) => value(made, piece)));
  const decisions = new Map(); // id -> its event, and whether a piece of it was written
  const parts = [line(columns.map(([title]) => title))];
  let after = 0;
  let end = false;
  let events = 0;
  while (!end && events < MOST) {
    const page = await api.events(name, after, PAGE);
    for (const event of page.events) {
      if (event.kind === "decision") decisions.set(event.decision, { made: event, paid: false });
      if (event.kind !== "piece" || event.stream) continue;
      const decision = decisions.get(event.decision);
      decision.paid = true;
      parts.push(row(decision.made, event));
    }
    events += page.events.length;
    ({ next: after, end } = page);
    say($("export-note"), `${count(events)} events read`);
  }
  for (const { made, paid } of decisions.values()) if (!paid) parts.push(row(made));
  const address = URL.createObjectURL(new Blob(parts, { type: "text/csv" }));
  h("a", { href: address, download: `${name}.csv` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
  say($("export-note"), end
    ? `${count(events)} events written to ${name}.csv`
    : `The first ${count(events)} events were written to ${name}.csv; for a longer log use accrual db export.`);
}
