// Shows openapi.json, and sends the calls that one fills in. Everything is put in as text, never as markup.
"use strict";

const $ = (id) => document.getElementById(id);

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "class") made.className = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

/** A schema as a short text: what may stand at this place. */
function typeText(schema, all, depth = 0) {
  if (!schema) return "any JSON";
  if (schema.$ref) {
    const name = schema.$ref.split("/").pop();
    return depth > 4 ? name : typeText(all[name], all, depth);
  }
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.anyOf) return schema.anyOf.map((one) => typeText(one, all, depth)).join(" | ");
  if (schema.type === "array") return `[${typeText(schema.items, all, depth)}, …]${bounds(schema)}`;
  if (schema.type === "object" && schema.properties) {
    const required = new Set(schema.required || []);
    const pad = "  ".repeat(depth + 1);
    const lines = Object.entries(schema.properties).map(([key, value]) => {
      const about = described(value) ? `  // ${described(value)}` : "";
      const preset = "default" in value && value.default !== null && value.default !== ""
        ? ` = ${JSON.stringify(value.default)}` : "";
      return `${pad}${key}${required.has(key) ? "" : "?"}: ${typeText(value, all, depth + 1)}${preset},${about}`;
    });
    return lines.length ? `{\n${lines.join("\n")}\n${"  ".repeat(depth)}}` : "{}";
  }
  return schema.type ? schema.type + bounds(schema) : "any JSON";
}

/** The form and the limits of a value. */
function bounds(schema) {
  const parts = [];
  const [low, high] = [
    schema.minimum ?? schema.minLength ?? schema.minItems, schema.maximum ?? schema.maxLength ?? schema.maxItems,
  ];
  const isAny = high === undefined || high >= Number.MAX_SAFE_INTEGER;
  if (schema.pattern) parts.push(schema.pattern);
  if (low && !isAny) parts.push(`${low} to ${high}`);
  else if (!isAny) parts.push(`at most ${high}`);
  else if (low) parts.push(`at least ${low}`);
  const unit = { string: " characters", array: " entries" }[schema.type] ?? "";
  return parts.length ? ` (${parts.join(", ")}${schema.pattern ? "" : unit})` : "";
}

function described(schema) {
  return [schema, ...(schema.anyOf ?? [])].map((one) => oneLine(one.description ?? "")).filter(Boolean).join(" ");
}

function oneLine(text) {
  return text.replace(/\s+/g, " ").replaceAll("`", "");
}

/** Something to begin with in the body of a call: the required fields. */
function example(schema, all) {
  if (schema.$ref) return example(all[schema.$ref.split("/").pop()], all);
  if (schema.anyOf) return example(schema.anyOf[0], all);
  if ("default" in schema) return schema.default;
  if (schema.type === "object") {
    const required = schema.required || [];
    return Object.fromEntries(required.map((key) => [key, example(schema.properties[key], all)]));
  }
  return { string: "", integer: 0, boolean: false, array: [] }[schema.type] ?? null;
}

function parameterTable(parameters, all) {
  const rows = parameters.map((one) => element("tr", {},
    element("td", {}, element("code", {}, one.name + (one.required ? "" : "?"))),
    element("td", {}, typeText(one.schema, all)),
    element("td", {}, described(one.schema))));
  return element("table", {}, element("tbody", {}, ...rows));
}

function responseTable(responses, all) {
  const rows = Object.entries(responses).map(([status, response]) => {
    const what = element("td");
    const json = response.content && response.content["application/json"];
    if (status === "200" && json) {
      what.append(element("pre", {}, typeText(json.schema.properties.data, all)));
    } else {
      for (const line of response.description.split("\n")) {
        what.append(element("div", {}, line.replace(/^- /, "").replaceAll("`", "")));
      }
    }
    return element("tr", {}, element("td", {}, element("code", {}, status)), what);
  });
  return element("table", {}, element("tbody", {}, ...rows));
}

function tryForm(method, path, operation, all) {
  const form = element("form");
  const inputs = new Map();
  for (const one of operation.parameters || []) {
    const input = element("input", { name: one.name });
    inputs.set(one.name, input);
    form.append(element("label", {}, one.name + (one.required ? "" : " (optional)"), input));
  }
  let body = null;
  if (operation.requestBody) {
    body = element("textarea", { spellcheck: "false" });
    body.value = JSON.stringify(example(operation.requestBody.content["application/json"].schema, all), null, 2);
    form.append(element("label", {}, "Body", body));
  }
  const result = element("pre", { "aria-live": "polite" });
  result.hidden = true;
  form.append(element("button", {}, "Try it"), result);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    result.hidden = false;
    result.textContent = "…";
    result.textContent = await call(method, path, inputs, body);
  });
  return form;
}

async function call(method, path, inputs, body) {
  const query = new URLSearchParams();
  for (const [name, input] of inputs) {
    if (path.includes(`{${name}}`)) path = path.replace(`{${name}}`, encodeURIComponent(input.value));
    else if (input.value) query.set(name, input.value);
  }
  const headers = {};
  if (body) headers["Content-Type"] = "application/json";
  if ($("token").value) headers.Authorization = `Bearer ${$("token").value}`;
  if ($("user").value) headers["Nexo-User"] = $("user").value;
  const address = path.slice(1) + (`${query}` && `?${query}`);
  try {
    const response = await fetch(address, { method: method.toUpperCase(), headers, body: body && body.value });
    const text = await response.text();
    return `${response.status} ${response.statusText}\n\n${readable(text)}`;
  } catch (error) {
    return `The server did not answer: ${error.message}`;
  }
}

/** Reply text for reading; a token in it is kept for the calls that follow. */
function readable(text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    return text;
  }
  if (value.data && value.data.access_token) $("token").value = value.data.access_token;
  return JSON.stringify(value, null, 2);
}

function callEntry(method, path, operation, all) {
  const inside = element("div");
  if (operation.description) inside.append(element("p", {}, oneLine(operation.description)));
  if (operation.parameters && operation.parameters.length) {
    inside.append(element("h4", {}, "Parameters"), parameterTable(operation.parameters, all));
  }
  if (operation.requestBody) {
    const schema = operation.requestBody.content["application/json"].schema;
    const about = schema.$ref && all[schema.$ref.split("/").pop()].description;
    inside.append(element("h4", {}, "Body"), element("pre", {}, typeText(schema, all)));
    if (about) inside.append(element("p", {}, oneLine(about)));
  }
  inside.append(element("h4", {}, "Answers"), responseTable(operation.responses, all),
    tryForm(method, path, operation, all));
  const summary = element("summary", {},
    element("span", { class: `method ${method}` }, method.toUpperCase()), element("code", {}, path), " ",
    element("span", { class: "summary" }, operation.summary));
  if (!operation.security.length) summary.append(" ", element("span", { class: "open-to-all" }, "no token needed"));
  return element("details", { id: operation.operationId }, summary, inside);
}

function show(api) {
  $("version").textContent = api.info.version;
  $("about").textContent = api.info.description.replaceAll("`", "");
  const all = api.components.schemas;
  const calls = $("calls");
  calls.replaceChildren();
  for (const tag of api.tags) {
    const entries = [];
    for (const [path, methods] of Object.entries(api.paths)) {
      for (const [method, operation] of Object.entries(methods)) {
        if (operation.tags.includes(tag.name)) entries.push(callEntry(method, path, operation, all));
      }
    }
    $("contents").append(element("a", { href: `#${tag.name}` }, tag.name));
    calls.append(element("h2", { id: tag.name }, tag.name), element("p", {}, tag.description), ...entries);
  }
}

fetch("openapi.json")
  .then((response) => response.json())
  .then(show)
  .catch((error) => { $("calls").textContent = `The description could not be loaded: ${error.message}`; });
