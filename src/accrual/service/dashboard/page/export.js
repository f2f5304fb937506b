// The log of a bandit as a CSV file that `accrual fit` reads: a row for each piece, with its decision. It is read page
// by page with the key of this tab.

import * as api from "./api.js";
import { $, h, say } from "./dom.js";
import { count } from "./words.js";

const COLUMNS = ["id", "arm", "at", "propensity", "value", "age", "stream"];
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

/** Read the whole log of a bandit and hand it to the browser as a file. */
export async function download(name) {
  const { features } = await api.state(name);
  const decisions = new Map(); // id -> [event, whether a piece of the reward was written]
  const contexts = features.map((feature) => feature.name);
  const row = (made, piece) => line([
    made.decision, made.arm, made.at, made.propensity, piece?.value, piece?.age, piece?.stream,
    ...contexts.map((feature) => made.context?.[feature]),
  ]);
  const parts = [line([...COLUMNS, ...contexts])];
  let after = 0;
  let end = false;
  let events = 0;
  while (!end && events < MOST) {
    const page = await api.events(name, after, PAGE);
    for (const event of page.events) {
      if (event.kind === "decision") decisions.set(event.decision, { made: event, paid: false });
      if (event.kind !== "piece") continue;
      const decision = decisions.get(event.decision);
      decision.paid ||= !event.stream;
      parts.push(row(decision.made, event));
    }
    events += page.events.length;
    ({ next: after, end } = page);
    say($("export-note"), `${count(events)} events read`);
  }
  for (const { made, paid } of decisions.values()) if (!paid) parts.push(row(made)); // it has paid nothing yet
  const address = URL.createObjectURL(new Blob(parts, { type: "text/csv" }));
  h("a", { href: address, download: `${name}.csv` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
  say($("export-note"), end
    ? `${count(events)} events written to ${name}.csv`
    : `The first ${count(events)} events were written to ${name}.csv; for a longer log use accrual db export.`);
}
