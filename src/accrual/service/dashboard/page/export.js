// The log of a bandit as a CSV file, read page by page with the key of this tab.

import * as api from "./api.js";
import { $, h, say } from "./dom.js";
import { count } from "./words.js";

const COLUMNS = ["seq", "kind", "at", "decision", "arm", "value", "age", "window", "cap", "propensity", "stream"];
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
  const { arms, features } = await api.state(name);
  const more = [
    ...features.map((feature) => ["context", feature.name]),
    ...Object.keys(arms[0].about || {}).map((feature) => ["about", feature]),
  ];
  const values = (event) => [
    ...COLUMNS.map((column) => event[column]),
    ...more.map(([of, feature]) => event[of]?.[feature]),
  ];
  const parts = [line([...COLUMNS, ...more.map((column) => column.join("_"))])];
  let after = 0;
  let end = false;
  let rows = 0;
  while (!end && rows < MOST) {
    const page = await api.events(name, after, PAGE);
    parts.push(...page.events.map((event) => line(values(event))));
    rows += page.events.length;
    ({ next: after, end } = page);
    say($("export-note"), `${count(rows)} events read`);
  }
  const address = URL.createObjectURL(new Blob(parts, { type: "text/csv" }));
  h("a", { href: address, download: `${name}.csv` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
  say($("export-note"), end
    ? `${count(rows)} events written to ${name}.csv`
    : `The first ${count(rows)} events were written to ${name}.csv; for a longer log use accrual db export.`);
}
