// The API's description for people: the content of /v1/openapi.json, one panel for each operation.

import { $, h, say } from "./dom.js";

const nameOf = (reference) => reference.split("/").pop();

/** Write a schema in a few words: "whole number, 1 to 100". */
function kind(schema) {
  if (schema.$ref) return nameOf(schema.$ref);
  if (schema.anyOf) return schema.anyOf.map(kind).join(" or ");
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" or ");
  if (schema.type === "array") return schema.prefixItems ? `list of ${schema.prefixItems.map(kind).join(", ")}` : `list of ${kind(schema.items || {})}`;
  if (schema.type === "object") return schema.additionalProperties ? `object of ${kind(schema.additionalProperties)}` : "object";
  const word = { integer: "whole number", number: "number", string: "text", boolean: "true or false", null: "null" }[schema.type] || "anything";
  const { minimum, maximum, minLength, maxLength } = schema;
  if (minimum !== undefined && maximum !== undefined) return `${word}, ${minimum} to ${maximum}`;
  if (minLength !== undefined && maxLength !== undefined) return `${word}, ${minLength} to ${maxLength} characters`;
  return word;
}

/** Return the description of a schema, or of its alternatives. */
const meaning = (schema) => schema.description || (schema.anyOf || []).map(meaning).filter(Boolean).join(" Or: ");

function fields(label, rows) {
  const head = h("tr", {}, ...["Name", "Type", "Meaning"].map((text) => h("th", { scope: "col" }, text)));
  const lines = rows.map(({ name, schema, text, required }) =>
    h("tr", {}, h("th", { scope: "row" }, h("code", {}, name)),
      h("td", {}, kind(schema) + (required ? "" : ", may be left out")),
      h("td", {}, [text || meaning(schema), schema.default === undefined || schema.default === null ? "" : `Default: ${JSON.stringify(schema.default)}.`].join(" "))));
  const table = h("table", { class: "scores" }, h("thead", {}, head), h("tbody", {}, ...lines));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, table);
}

const link = (schema) => h("p", {}, ...(schema.$ref
  ? [h("a", { href: `#${nameOf(schema.$ref)}` }, nameOf(schema.$ref))]
  : [kind(schema)]));

function operation(path, method, described) {
  const title = `${described.operationId}-title`;
  const parts = [
    h("div", { class: "panel-head" },
      h("h2", { id: title }, h("code", {}, `${method.toUpperCase()} ${path}`)), h("p", {}, described.description)),
  ];
  if (described.parameters.length)
    parts.push(fields(`Parameters of ${described.operationId}`, described.parameters.map((one) => ({ name: one.name, schema: one.schema, text: one.description, required: one.required }))));
  const body = described.requestBody?.content["application/json"].schema;
  if (body) parts.push(h("h3", {}, described.requestBody.required ? "Body" : "Body, may be left out"), link(body));
  const [status, answer] = Object.entries(described.responses).find(([code]) => code.startsWith("2"));
  parts.push(h("h3", {}, `Answer (${status})`), link(answer.content["application/json"].schema));
  const refusals = Object.entries(described.responses).filter(([code]) => !code.startsWith("2"));
  parts.push(h("details", {}, h("summary", {}, "Errors"),
    h("ul", {}, ...refusals.map(([code, one]) => h("li", {}, `${code}: ${one.description}`)))));
  return h("section", { class: "panel api", "aria-labelledby": title }, ...parts);
}

function type([name, schema]) {
  const rows = Object.entries(schema.properties || {}).map(([field, one]) => ({
    name: field, schema: one, required: (schema.required || []).includes(field),
  }));
  return h("section", { class: "api", "aria-labelledby": name },
    h("h3", { id: name }, name), h("p", {}, schema.description || ""), rows.length ? fields(`Fields of ${name}`, rows) : null);
}

const answer = await fetch("/v1/openapi.json");
const found = await answer.json();
say($("about"), found.info.description.replaceAll("`", ""));
for (const [path, methods] of Object.entries(found.paths))
  for (const [method, described] of Object.entries(methods)) $("operations").append(operation(path, method, described));
$("types").append(...Object.entries(found.components.schemas).map(type));
if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
