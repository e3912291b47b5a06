// snake_case of the HTTP API to camelCase and back. Values that belong to the application are not touched.

const OPAQUE = new Set(["extra", "content"]);

/** @param {string} name */
function camelName(name) {
  return name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
}

/** @param {string} name */
function snakeName(name) {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/**
 * @param {any} value
 * @returns {any}
 */
export function camel(value) {
  if (Array.isArray(value)) return value.map(camel);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [camelName(name), OPAQUE.has(name) ? inner : camel(inner)]),
  );
}

/**
 * The parameters of a call; undefined ones are left out.
 * @param {Record<string, any>} params
 * @returns {Record<string, any>}
 */
export function snake(params) {
  return Object.fromEntries(
    Object.entries(params)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [snakeName(name), value]),
  );
}
