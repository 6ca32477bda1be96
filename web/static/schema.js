/** JSON Schema as OpenAPI 3.1 and AsyncAPI 3 use it: references, one table of fields, and an example to start from. */

import { h } from './dom.js';
import { ENGLISH } from './prose.js';
import { t } from './texts.js';

const DEPTH = 5;

/** Follows a local reference ("#/components/…"); anything else is returned unchanged. */
export function resolve(root, node) {
  for (let hops = 0; node?.$ref && hops < 8; hops++) {
    const target = node.$ref.replace(/^#\//, '').split('/')
      .reduce((at, key) => at?.[decodeURIComponent(key).replace(/~1/g, '/').replace(/~0/g, '~')], root);
    const { $ref, ...siblings } = node;
    node = { ...target, ...siblings };
  }
  return node ?? {};
}

/** The schema with its allOf parts merged in; if several parts describe one field, the last has priority. */
export function flat(root, schema) {
  const own = resolve(root, schema);
  if (!own.allOf) return own;
  const parts = own.allOf.map((part) => flat(root, part));
  return {
    ...Object.assign({}, ...parts), ...own, allOf: undefined,
    properties: Object.assign({}, ...parts.map((p) => p.properties), own.properties),
    required: [...parts.flatMap((p) => p.required ?? []), ...(own.required ?? [])],
  };
}

/** "array of string", "number or null". */
export function typeName(root, schema) {
  const own = flat(root, schema);
  const choice = own.oneOf ?? own.anyOf;
  if (choice) return choice.map((one) => typeName(root, one)).join(` ${t('or')} `);
  if (own.const !== undefined) return JSON.stringify(own.const);
  const types = [own.type ?? (own.properties ? 'object' : own.items ? 'array' : 'any')].flat();
  return types.map((type) => {
    if (type === 'array' && own.prefixItems) return `[${own.prefixItems.map((one) => typeName(root, one)).join(', ')}]`;
    if (type === 'array') return t('arrayOf', { type: own.items ? typeName(root, own.items) : 'any' });
    return own.format && type !== 'null' ? `${type} (${own.format})` : type;
  }).join(` ${t('or')} `);
}

/** Bounds that need no text; the others are texts of the page under their own name. */
const SIGNS = { minimum: '≥', maximum: '≤', exclusiveMinimum: '>', exclusiveMaximum: '<' };
const RULES = ['minLength', 'maxLength', ...Object.keys(SIGNS), 'minItems', 'maxItems', 'pattern'];

function rules(schema) {
  const said = RULES.filter((key) => schema[key] !== undefined)
    .map((key) => (SIGNS[key] ? `\u2066${SIGNS[key]} ${schema[key]}\u2069` : t(key, { n: schema[key] })));
  if (schema.default !== undefined) said.push(t('defaultValue', { value: JSON.stringify(schema.default) }));
  const example = schema.example ?? schema.examples?.[0];
  if (example !== undefined) said.push(t('forExample', { value: JSON.stringify(example) }));
  return said.join(' · ');
}

/** One row per field, nested ones with their path; the root of an array or a scalar is a single row. */
function rows(root, schema, path = '', required = false, depth = 0, seen = []) {
  const own = flat(root, schema);
  const out = [];
  if (path) out.push({ path, required, type: typeName(root, schema), schema: own });
  const inner = own.items ? flat(root, own.items) : own;
  const ref = schema.$ref ?? schema.items?.$ref;
  if (depth >= DEPTH || (ref && seen.includes(ref))) return out;
  const below = ref ? [...seen, ref] : seen;
  const prefix = own.items ? `${path}[]` : path;
  for (const [name, property] of Object.entries(inner.properties ?? {})) {
    out.push(...rows(root, property, prefix ? `${prefix}.${name}` : name, inner.required?.includes(name), depth + 1, below));
  }
  const extra = inner.additionalProperties;
  if (extra && typeof extra === 'object') out.push(...rows(root, extra, `${prefix ? `${prefix}.` : ''}<key>`, false, depth + 1, below));
  (own.oneOf ?? own.anyOf ?? []).forEach((one) => {
    if (flat(root, one).properties) out.push(...rows(root, one, path, required, depth + 1, below).filter((row) => row.path !== path));
  });
  return out;
}

/** Every field name of a schema, for the search. */
export function fieldNames(root, schema) {
  return schema ? rows(root, schema).map((row) => row.path) : [];
}

/** A table of fields with name, type, whether required (a question for requests only), and its description. */
export function fieldTable(root, schema, label, marks = true) {
  const own = flat(root, schema);
  const list = rows(root, schema);
  const shape = own.type === 'array' || !own.properties ? h('p', { class: 'shape' }, typeName(root, schema)) : null;
  const said = own.description && !list.length ? h('p', { ...ENGLISH, class: 'lead' }, own.description) : null;
  if (!list.length) return h('div', {}, shape ?? h('p', { class: 'shape' }, t('noFields')), said);
  return h('div', {}, shape, table(list.map((row) => ({
    name: row.path, required: marks && row.required, type: row.type, choice: row.schema.enum ?? row.schema.items?.enum,
    text: row.schema.description, rules: rules(row.schema),
  })), label));
}

/** The table itself, shared by schemas and parameters; a narrow screen scrolls it under its name. */
export function table(list, label) {
  return h('div', { class: 'scroll', tabindex: '0', role: 'group', 'aria-label': label }, h('table', { class: 'fields' },
    h('thead', {}, h('tr', {}, ['field', 'type', 'notes'].map((key) => h('th', { scope: 'col' }, t(key))))),
    h('tbody', {}, list.map((row) => h('tr', {},
      h('th', { scope: 'row' }, h('code', { dir: 'ltr' }, row.name), row.required && h('span', { class: 'badge required' }, t('required'))),
      h('td', {}, h('span', { class: 'type' }, row.type)),
      h('td', {}, row.text && h('div', ENGLISH, row.text),
        row.choice && h('div', { class: 'choices' }, row.choice.map((value) => h('code', { dir: 'ltr' }, String(value)))),
        row.rules && h('div', { class: 'rules' }, row.rules)))))));
}

/** A valid value of the schema, from its examples, defaults and first choices. It is complete, or a minimal request
 *  with the required fields and those for which the document has a value. */
export function example(root, schema, whole = false, depth = 0) {
  const own = flat(root, schema);
  for (const given of [own.example, own.examples?.[0], own.default, own.const, own.enum?.[0]]) if (given !== undefined) return given;
  if (depth > DEPTH) return null;
  if (own.oneOf ?? own.anyOf) return example(root, (own.oneOf ?? own.anyOf)[0], whole, depth + 1);
  const type = [own.type].flat().find((one) => one !== 'null') ?? (own.properties ? 'object' : 'string');
  if (type === 'object') {
    const known = (one) => ['example', 'examples', 'default', 'const'].some((key) => flat(root, one)[key] !== undefined);
    const fields = Object.entries(own.properties ?? {}).filter(([name, one]) => whole || own.required?.includes(name) || known(one));
    return Object.fromEntries(fields.map(([name, one]) => [name, example(root, one, whole, depth + 1)]));
  }
  if (type === 'array') return own.prefixItems ? own.prefixItems.map((one) => example(root, one, whole, depth + 1)) : own.items ? [example(root, own.items, whole, depth + 1)] : [];
  return { boolean: false, number: 0, integer: 0 }[type] ?? '';
}
