// The log of a bandit as a CSV file, read page by page with the key of this tab.

import * as api from "./api.js";
import { $, h, say } from "./dom.js";
import { count } from "./words.js";

const COLUMNS = ["seq", "kind", "at", "decision", "arm", "value", "age", "window", "cap"];
const PAGE = 10_000; // events of one request
const MOST = 1_000_000; // events of a file: all of them are held in memory

const cell = (value) => {
  const text = value === undefined || value === null ? "" : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};
const line = (values) => `${values.map(cell).join(",")}\r\n`;

/** Read the whole log of a bandit and hand it to the browser as a file. */
export async function download(name) {
  const parts = [line(COLUMNS)];
  let after = 0;
  let end = false;
  let rows = 0;
  while (!end && rows < MOST) {
    const page = await api.events(name, after, PAGE);
    parts.push(...page.events.map((event) => line(COLUMNS.map((column) => event[column]))));
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
