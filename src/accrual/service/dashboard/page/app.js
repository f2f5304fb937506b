// The page: it reads the service about once a second and shows the answers. It changes nothing in the service.

import * as api from "./api.js";
import * as arms from "./arms.js";
import { Palette } from "./colours.js";
import * as contexts from "./contexts.js";
import * as decisions from "./decisions.js";
import { $, h, say, show } from "./dom.js";
import { download } from "./export.js";
import * as guardrails from "./guardrails.js";
import * as overview from "./overview.js";
import { Regrets, Shares, Spreads } from "./panels.js";
import * as verdict from "./verdict.js";
import { inUnit, isSign, plural, reward, short, sum, unitOf } from "./words.js";

const REST = 1_000; // milliseconds between two readings of a state
const REST_MOST = 15_000; // milliseconds at most, after failures
const WORTH = 10_000; // milliseconds between two readings of what contexts are worth
const LIST = 10_000; // milliseconds between two readings of the list of bandits, and of the overview

let about = null;
let listed = { at: -Infinity, bandits: [], archived: [], broken: [] };
let current = null; // the bandit that is shown; null while the overview is shown
let overviewAt = -Infinity; // when the overview was last drawn
let last = null; // what was last shown of the current bandit
let worthAt = -Infinity; // when the worth of contexts was last read
let palette = new Palette();
let wake = () => {}; // ends the current pause
const shares = new Shares();
const spreads = new Spreads();
const regrets = new Regrets();

const rest = (time) =>
  new Promise((done) => {
    const timer = setTimeout(done, time);
    wake = () => { clearTimeout(timer); done(); };
  });

async function run() {
  setUp();
  let failures = 0;
  for (;;) {
    while (document.hidden) await rest(60_000);
    try {
      await update();
      failures = 0;
    } catch (error) {
      if (error instanceof api.Refused && [401, 403].includes(error.status)) {
        await askForKey(error);
        continue;
      }
      failures += 1;
      fail(error, failures);
      if (error.kind === "archived" || error.kind === "unknown-bandit") listed.at = -Infinity; // it was archived
    }
    await rest(failures ? Math.min(REST * 1.5 ** failures, REST_MOST) : REST);
  }
}

async function update() {
  about ||= await api.about();
  say($("version"), `accrual ${about.version}`);
  if (about.keys && !api.key.get()) {
    await askForKey(null);
    return;
  }
  if (performance.now() - listed.at > LIST || !listed.bandits.length) {
    const { bandits, archived, not_served: broken } = await api.bandits();
    listed = { bandits, archived, broken, at: performance.now() };
    offer();
  }
  live();
  show($("forget"), Boolean(api.key.get()));
  show($("empty"), ![...listed.bandits, ...listed.archived, ...listed.broken].length);
  show($("opening"), Boolean(current) && !last);
  await updateOverview();
  if (!current) return;
  const bandit = current;
  const [state, recent, truth] = await Promise.all([
    api.state(bandit.name),
    api.recent(bandit.name, decisions.LIMIT),
    about.demo ? api.truth() : null,
  ]);
  if (last?.bandit !== bandit) shares.begin(await api.history(bandit.name), state, bandit);
  if (bandit !== current) return; // another bandit was chosen meanwhile
  show($("opening"), false);
  const worth = last?.bandit === bandit ? last.worth : null;
  last = { bandit, state, recent, simulated: truth, truth: truth?.bandit === bandit.name ? truth : null, worth };
  draw();
  live();
  updateWorth(bandit, state);
}

/** Read what contexts are worth. The service takes a while to compute it, so nothing else waits for it. */
async function updateWorth(bandit, state) {
  if (!state.features.length || performance.now() - worthAt < WORTH) return;
  worthAt = performance.now();
  const worth = await api.contextWorth(bandit.name).catch(() => null); // the next reading tries again
  if (!worth || bandit !== current) return;
  contexts.drawWorth(worth);
  if (last?.bandit === bandit) last.worth = worth;
}

/** Draw the overview, while the address names none of several bandits. */
async function updateOverview() {
  const shown = !current && listed.bandits.length + listed.archived.length + listed.broken.length > 0;
  if (shown && performance.now() - overviewAt > LIST) {
    await overview.draw(listed.bandits, listed.archived, listed.broken);
    overviewAt = performance.now();
  }
  show($("overview"), shown && !current);
  if (shown) document.title = "All bandits · accrual";
}

/** List the bandits to choose from, and choose the one that the address names, or the only one. */
function offer() {
  const names = listed.bandits.map((bandit) => bandit.name);
  const select = $("bandit");
  if ([...select.options].map((option) => option.value).join("\n") !== names.join("\n")) {
    select.replaceChildren(...names.map((name) => { const option = h("option"); option.textContent = option.value = name; return option; }));
  }
  show($("all"), names.length + listed.archived.length > 1);
  const broken = listed.broken.map(({ name, why }) => `The bandit ${name} is not served: ${why}.`);
  say($("broken"), broken.join(" "));
  show($("broken"), broken.length > 0);
  const wanted = decodeURIComponent(location.hash.slice(1));
  const [only, ...others] = listed.bandits;
  const alone = only && !others.length && !listed.archived.length;
  choose(listed.bandits.find((bandit) => bandit.name === wanted) || (alone ? only : null));
  show($("chooser"), Boolean(current));
}

function choose(bandit) {
  if (bandit?.name === current?.name) return;
  current = bandit;
  last = null;
  palette = new Palette();
  arms.forget();
  contexts.forget();
  worthAt = -Infinity;
  decisions.forget(bandit);
  regrets.hide();
  show($("watch"), false);
  show($("overview"), false);
  overviewAt = -Infinity;
  say($("facts"), "");
  say($("export-note"), "");
  if (bandit) {
    $("bandit").value = bandit.name;
    const policy = bandit.policy.split("(")[0];
    say($("facts"), `${policy} · window ${inUnit(bandit.window, unitOf(bandit, 1))}`);
  }
}

function draw() {
  if (!last) return;
  const { bandit, state, recent, truth } = last;
  const unit = unitOf(bandit);
  show($("watch"), true);
  document.title = `${bandit.name} · accrual`;
  verdict.draw(state, bandit, last.worth ?? null, (length) => inUnit(length, unit));
  const worse = guardrails.alert(state);
  say($("guardrail-alert"), worse);
  show($("guardrail-alert"), Boolean(worse));
  show($("simulated"), Boolean(last.simulated));
  if (last.simulated) {
    const days = last.simulated.days_per_second;
    say($("simulated"), `Simulated traffic of a course platform. One second is ${days === 1 ? "a day" : `${days} days`} there.`);
  }
  const above = arms.aboveCap(state);
  say($("above-cap"), above);
  show($("above-cap"), Boolean(above));
  say($("alarm"), state.alarm.sentence);
  show($("alarm"), state.alarm.arms.length > 0);
  figures(state, bandit);
  const named = palette.update(state.arms);
  arms.draw(state, bandit, palette, truth?.means);
  const shown = named.map((name) => ({ name, slot: palette.of(name) }));
  shares.draw(state, bandit, shown);
  spreads.draw(state, bandit, shown);
  if (truth) regrets.draw(truth);
  guardrails.draw(state);
  contexts.draw(state, bandit);
  decisions.draw(recent, state.at, palette);
}

function figures(state, bandit) {
  const total = (name) => state.arms.reduce((all, arm) => all + (arm[name] || 0), 0);
  const known = state.arms.some((arm) => arm.estimate !== null);
  const sign = isSign(bandit.unit) ? bandit.unit : ""; // a sign stands before the figure, a word below it
  const word = bandit.unit && !sign ? `${bandit.unit}, ` : "";
  const made = bandit.imported ? `${short(bandit.imported)} of them from an old log` : "made so far";
  fill($("figures"), [
    ["Decisions", short(state.decisions), state.pending ? `${short(state.pending)} may still be paid for` : made],
    ["Reward arrived", reward(sum(total("observed")), sign), `${word}in time to count`],
    ["Still expected", known ? reward(sum(total("expected")), sign) : "–", word + expectedNote(state, bandit)],
  ]);
  fill($("engineers-figures"), [
    ["Pending", short(state.pending), "decisions whose window has not ended"],
    ["Late pieces", short(state.late), "came after the window: stored, but not learned from"],
    ["Duplicates", short(state.duplicates), "requests sent again, counted once"],
    ["Not learned yet", plural(state.behind, "event"), state.behind ? "stored by other workers" : "every stored event has been learned from"],
  ]);
}

function fill(host, rows) {
  if (!host.children.length) {
    host.append(...rows.map(([name]) => h("div", {}, h("dt", {}, name), h("dd"), h("dd", { class: "note" }))));
  }
  rows.forEach(([, value, note], i) => {
    say(host.children[i].children[1], value);
    say(host.children[i].children[2], note);
  });
}

/** Say what "still expected" counts, and how much of it is a guess. */
function expectedNote(state, bandit) {
  const waiting = state.arms.filter((arm) => arm.pending);
  if (!waiting.length) return "no decision is pending";
  if (waiting.length && waiting.every((arm) => arm.expected === null)) return "no arm has an estimate yet";
  const oldest = Math.max(...state.arms.map((arm) => arm.reached));
  const early = oldest < bandit.window * 0.999;
  const unknown = waiting.filter((arm) => arm.expected === null).length;
  const without = unknown ? `, without ${plural(unknown, "arm")} that have no estimate` : "";
  return early
    ? `from pending decisions${without}; a guess for ages beyond ${inUnit(oldest, unitOf(bandit))}`
    : `from pending decisions${without}`;
}

function live() {
  $("status").dataset.state = "live";
  say($("status"), "Live");
  show($("trouble"), false);
  document.body.classList.remove("stale");
}

function fail(error, failures) {
  const answered = error instanceof api.Refused;
  if (!answered && failures === 1 && last) return; // a single lost request is no news
  const since = new Date().toLocaleTimeString("en-GB");
  if ($("trouble").hidden) {
    say($("trouble"), answered
      ? `The service cannot show this: ${error.message}`
      : `Disconnected since ${since}: no answer from the service. ${last ? "The page shows older figures. " : ""}Trying again.`);
  }
  $("status").dataset.state = "gone";
  say($("status"), answered ? "Refused" : "Disconnected");
  show($("trouble"), true);
  document.body.classList.add("stale");
}

/** Ask for a key until one is given. Whether it is good shows when it is used. */
async function askForKey(refusal) {
  const had = Boolean(api.key.get());
  api.key.forget();
  about = null;
  listed = { at: -Infinity, bandits: [], archived: [], broken: [] };
  choose(null);
  for (const id of ["overview", "all", "broken", "watch", "opening", "empty", "chooser", "forget", "trouble"]) show($(id), false);
  say($("facts"), "");
  say($("key-wrong"), refusal && had ? refusal.message : "");
  $("status").dataset.state = "key";
  say($("status"), "Key needed");
  show($("key-panel"), true);
  $("key").focus();
  await new Promise((done) => {
    $("key-form").onsubmit = (event) => {
      event.preventDefault();
      const text = $("key").value.trim();
      if (!text) return;
      api.key.set(text);
      $("key").value = "";
      done();
    };
  });
  show($("key-panel"), false);
}

function setUp() {
  const origin = location.origin;
  const post = "-H 'Content-Type: application/json' \\\n  -d";
  $("curl-create").textContent =
    `curl ${origin}/v1/bandits ${post} '{"name": "plays", "window": "60d", "arms": ["jazz", "rock"]}'`;
  $("curl-decide").textContent = `curl -X POST ${origin}/v1/bandits/plays/decisions`;
  $("curl-observe").textContent =
    `curl ${origin}/v1/bandits/plays/pieces ${post} '{"decision": 0, "value": 0.7, "key": "play-991"}'`;
  $("bandit").addEventListener("change", () => { location.hash = encodeURIComponent($("bandit").value); });
  $("export").addEventListener("click", () => {
    download(current).catch((error) => say($("export-note"), `The log could not be read: ${error.message}`));
  });
  addEventListener("hashchange", () => { offer(); wake(); });
  document.addEventListener("visibilitychange", () => { if (!document.hidden) wake(); });
  document.addEventListener("redraw", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  $("forget").addEventListener("click", () => { api.key.forget(); about = null; wake(); });
}

run();
