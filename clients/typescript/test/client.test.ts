// Run by tests/clients/test_typescript.py against a real service. ACCRUAL_URL is its address, ACCRUAL_LOSSY_URL that of
// a proxy before it that loses requests and answers. The bandits "web", "lossy", "guarded" and "contexts" are
// there.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { createServer, type AddressInfo } from "node:net";
import { test } from "node:test";

import { Client, InputError, ServiceError, type Decision, type PieceResult } from "accrual-client";

const URL = process.env["ACCRUAL_URL"] as string;
const client = new Client(URL, { timeout: 300_000 });

/** Whether a call is refused by the service, with this status and word. */
async function refused(call: Promise<unknown>, status: number, kind: string, words: RegExp): Promise<void> {
  await assert.rejects(call, (error: unknown) => {
    assert.ok(error instanceof ServiceError, String(error));
    assert.deepEqual([error.status, error.kind], [status, kind]);
    assert.match(error.message, words);
    return true;
  });
}

test("decide, observe, close and look", async () => {
  const decision: Decision = await client.decide("web", { key: "visit-1" });
  assert.equal(decision.id, 0);
  assert.ok(["jazz", "rock"].includes(decision.arm));
  assert.equal(typeof decision.at, "number");
  assert.ok(decision.propensity !== null && decision.propensity > 0);
  assert.equal((await client.decide("web", { key: "visit-1" })).id, 0);
  assert.deepEqual((await client.decideMany("web", 3)).map(({ id }) => id), [1, 2, 3]);
  assert.equal((await client.observe("web", { decision: 0, value: 0.5, key: "a" })).status, "stored");
  assert.equal((await client.observe("web", { decision: 0, value: 0.5, key: "a" })).status, "again");
  assert.equal((await client.observe("web", { decision: 0, value: 0.25 })).status, "stored");
  assert.match((await client.observe("web", { decision: 0, value: 7 })).warning ?? "", /more in all than its arm's cap/);
  const results: PieceResult[] = await client.observeMany("web", [
    { decision: 1, value: 0.5, age: 0 },
    { decision: 9, value: 0.5 },
    { decision: 0, value: 0.6, key: "a" },
  ]);
  assert.deepEqual(results.map(({ status }) => status), ["stored", "unknown", "conflict"]);
  assert.deepEqual(await client.observeMany("web", []), []);
  await client.closeDecision("web", 2);
  assert.equal((await client.observe("web", { decision: 2, value: 0.5 })).status, "late");
  const thousand = Array.from({ length: 1000 }, (_, i) => ({ decision: 3, value: 0.0001, key: `many-${i}` }));
  assert.equal((await client.observeMany("web", thousand)).length, 1000);
  await new Promise((resolve) => setTimeout(resolve, 600)); // a state may be half a second old
  const state = await client.state("web");
  assert.equal(state.decisions, 4);
  assert.equal(state.late, 1);
  assert.equal(state.verdict.winner, null);
  assert.deepEqual(state.alarm.arms, []);
  assert.deepEqual(state.arms.map(({ name, cap }) => [name, cap]), [["jazz", 1], ["rock", 2]]);
  assert.ok(Math.abs(state.arms.reduce((sum, arm) => sum + arm.observed, 0) - 8.35) < 1e-9);
});

test("a piece of a guardrail", async () => {
  const { id } = await client.decide("guarded");
  assert.equal((await client.observe("guarded", { decision: id, value: 1, stream: "refunds" })).status, "stored");
  const times = [{ at: new Date() }, { at: new Date().toISOString() }, { at: Date.now() / 1000 }, { age: "0s" }];
  for (const [i, when] of times.entries()) {
    assert.equal((await client.observe("guarded", { decision: id, value: 0.1, key: `${i}`, ...when })).status, "stored");
  }
  await assert.rejects(client.observe("guarded", { decision: id, value: 1, at: new Date("soon") }), InputError);
  await refused(client.observe("guarded", { decision: id, value: 1, stream: "refund" }), 422, "invalid", /did you mean 'refunds'/);
  const [rail] = (await client.state("guarded")).guardrails;
  assert.deepEqual([rail?.name, rail?.action, rail?.arms.length], ["refunds", "flag", 2]);
});

test("decide by a context", async () => {
  const context = { country: "de", new: true };
  const { id } = await client.decide("contexts", { key: "a", context });
  assert.equal((await client.decide("contexts", { key: "a", context })).id, id);
  await refused(client.decide("contexts", { key: "a", context: { country: "us" } }), 409, "conflict", /other contexts/);
  assert.equal((await client.decideMany("contexts", 2, { context: [context, { country: null }] })).length, 2);
  await refused(client.decideMany("contexts", 2, { context: [context] }), 422, "invalid", /2 contexts/);
});

test("what the service refuses", async () => {
  await refused(client.decide("nobody"), 404, "unknown-bandit", /no bandit is called/);
  await refused(client.observe("web", { decision: 99, value: 1 }), 404, "unknown-decision", /no decision has this id/);
  await refused(client.observe("web", { decision: 0, value: -1 }), 422, "invalid", /negative/);
  await refused(client.decide("web/../web"), 404, "not-found", /./); // a name cannot lead to another address
  await refused(client.decide("web", { context: { country: "de" } }), 422, "invalid", /no features/);
});

test("what cannot be sent", async () => {
  const value = "0.5" as unknown as number;
  await assert.rejects(client.observe("web", { decision: 0, value: NaN }), InputError);
  await assert.rejects(client.observe("web", { decision: 0, value }), /value must be a finite number, not "0.5"/);
  await assert.rejects(client.observe("web", { decision: 0.5, value: 1 }), /decision must be a whole number of at least 0/);
  await assert.rejects(client.decideMany("web", 1001), /n must be a whole number from 1 to 1000, not 1001/);
  await assert.rejects(client.observeMany("web", Array(1001).fill({ decision: 0, value: 1 })), /up to 1000 pieces/);
  assert.throws(() => new Client("localhost:8000"), /url must be an address such as http:/);
  assert.throws(() => new Client(URL, { timeout: 0.5 }), /timeout must be a whole number of at least 1, not 0.5/);
  assert.throws(() => new Client(URL, { attempts: 0 }), /attempts must be a whole number of at least 1, not 0/);
});

test("through a line that loses requests and answers, everything counts once", async () => {
  const lossy = new Client(process.env["ACCRUAL_LOSSY_URL"] as string, { timeout: 300_000, attempts: 40 });
  const ids = await Promise.all(
    Array.from({ length: 20 }, async (_, i) => {
      const { id } = await lossy.decide("lossy");
      await lossy.observe("lossy", { decision: id, value: i / 100 });
      return id;
    }),
  );
  assert.equal(new Set(ids).size, 20);
  await lossy.observeMany("lossy", ids.map((decision) => ({ decision, value: 1 })));
});

test("nobody there", async () => {
  await refused(new Client("http://127.0.0.1:9", { attempts: 2 }).state("web"), 0, "unreachable", /^no answer: \S/);
  const silent = createServer().listen(0, "127.0.0.1"); // takes connections and never answers
  await once(silent, "listening");
  const { port } = silent.address() as AddressInfo;
  const hasty = new Client(`http://127.0.0.1:${port}`, { attempts: 2, timeout: 50 });
  await refused(hasty.state("web"), 0, "unreachable", /timeout/);
  silent.close();
});

test("another address is not followed, and a page is no answer", async (t) => {
  const bodies: string[] = [];
  const other = createHttpServer((request, response) => {
    request.on("data", (part: Buffer) => bodies.push(part.toString())).on("end", () => response.end("<html>"));
  }).listen(0, "127.0.0.1");
  t.after(() => other.close()); // a failure must not leave it open, for then the process never ends
  await once(other, "listening");
  const elsewhere = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
  const here = createHttpServer((_, response) => {
    response.writeHead(307, { Location: `${elsewhere}/taken` }).end();
  }).listen(0, "127.0.0.1");
  t.after(() => here.close());
  await once(here, "listening");
  const moved = new Client(`http://127.0.0.1:${(here.address() as AddressInfo).port}`);
  await refused(moved.observe("web", { decision: 0, value: 1 }), 307, "redirected", /another address/);
  assert.deepEqual(bodies, []);
  await refused(new Client(elsewhere).state("web"), 200, "unreadable", /does not come from accrual's service/);
});
