/** The interface viewer: reads /openapi.json and /asyncapi.json and shows them by section, searchable, offline. Its own
 *  texts are in the page's language, those of the documents in English. */

import './docs-texts.js';
import { $, h, block, breakable } from './dom.js';
import { ENGLISH, prose } from './prose.js';
import { resolve, flat, fieldTable, fieldNames, table, typeName, example } from './schema.js';
import { t, languageSwitch } from './texts.js';
import { tryIt, credentialFields } from './tryit.js';

const base = new URL('..', import.meta.url);
const METHODS = ['get', 'post', 'put', 'patch', 'delete'];
const SOCKET = 'Socket'; // the group of the socket's messages, which comes last

async function load(name) {
  const response = await fetch(new URL(name, base), { headers: { accept: 'application/json' } });
  if (!response.ok) throw new Error(`${name}: HTTP ${response.status}`);
  return response.json();
}

const slug = (text) => text.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '');

/** The media type's schema of a request body or response. */
function schemaOf(doc, holder) {
  const content = resolve(doc, holder).content ?? {};
  return (content['application/json'] ?? Object.values(content)[0])?.schema;
}

/** Each alternative is a set of credentials that are needed together; an empty one is "none". */
function credentialsOf(doc, operation) {
  const alternatives = operation.security ?? doc.security ?? [];
  if (!alternatives.length) return { text: [''], headers: [] };
  const schemes = doc.components?.securitySchemes ?? {};
  const headers = alternatives.flatMap((one) => Object.keys(one)).map((key) => resolve(doc, schemes[key]))
    .filter((scheme) => scheme.type === 'apiKey' && scheme.in === 'header').map((scheme) => scheme.name);
  return { text: alternatives.map((one) => Object.keys(one).join(' + ')), headers: [...new Set(headers)] };
}

/** The codes of an operation's refusals with their statuses, from `x-codes`. */
const errorsOf = (operation) => Object.entries(operation['x-codes'] ?? {})
  .flatMap(([status, codes]) => codes.map((code) => ({ status, code })));

/** The executed example of a request body or response; responses of several operations list theirs by operation. */
function exampleOf(doc, holder, operation) {
  for (const media of Object.values(resolve(doc, holder ?? {}).content ?? {})) {
    const value = media.example ?? media.examples?.[operation.operationId]?.value;
    if (value !== undefined) return value;
  }
  return undefined;
}

const shown = (title, value) => value !== undefined && h('div', {}, h('h4', {}, title), block(title, JSON.stringify(value, null, 2)));

function endpoints(doc) {
  const list = [];
  for (const [path, item] of Object.entries(doc.paths ?? {})) {
    for (const name of METHODS) {
      const operation = item[name];
      if (!operation) continue;
      const parameters = [...(item.parameters ?? []), ...(operation.parameters ?? [])].map((one) => resolve(doc, one));
      const bodySchema = operation.requestBody && schemaOf(doc, operation.requestBody);
      const method = name.toUpperCase();
      const errors = errorsOf(operation);
      list.push({
        id: operation.operationId ?? slug(`${method} ${path}`), group: operation.tags?.[0] ?? '', method, path, summary: operation.summary ?? '', operation,
        parameters, bodySchema, errors,
        words: [method, path, operation.summary, operation.description, ...(operation.tags ?? []), ...parameters.map((p) => p.name),
          ...fieldNames(doc, bodySchema), ...errors.map((e) => e.code)].join(' ').toLowerCase(),
        draw: () => drawEndpoint(doc, list.find((one) => one.operation === operation)),
      });
    }
  }
  return list;
}

const part = (title, ...content) => h('div', { class: 'part' }, h('h3', {}, title), content);
const code = (text) => h('code', { dir: 'ltr' }, text);
const said = (text) => text && h('p', { ...ENGLISH, class: 'lead' }, text);

function drawEndpoint(doc, { id, method, path, operation, parameters, bodySchema, errors }) {
  const { text, headers } = credentialsOf(doc, operation);
  const answers = Object.entries(operation.responses ?? {}).filter(([status]) => !/^[45]/.test(status) && status !== 'default');
  const body = operation.requestBody && resolve(doc, operation.requestBody);
  return [
    prose(operation.description),
    part(t('credential'), h('p', { class: 'choices' },
      text.map((one, i) => [i > 0 && ` ${t('or')} `, one ? code(one) : h('span', {}, t('none'))]).flat(),
      operation['x-audience'] && h('span', {}, t('forAudience'), ' ', code(String(operation['x-audience']))),
      operation['x-starts-action'] && h('span', {}, t('startsAction'), ' ', code(String(operation['x-starts-action']))))),
    parameters.length > 0 && part(t('parameters'), table(parameters.map((one) => ({
      name: one.name, required: one.required, type: `${typeName(doc, one.schema ?? {})}, ${one.in}`,
      text: one.description, choice: resolve(doc, one.schema).enum,
      rules: one.example !== undefined && t('forExample', { value: JSON.stringify(one.example) }),
    })), t('parameters'))),
    bodySchema && part(t(body.required ? 'requestBody' : 'requestBodyOptional'), fieldTable(doc, bodySchema, t('requestFields')),
      shown(t('example'), exampleOf(doc, body, operation))),
    ...answers.map(([status, holder]) => {
      const response = resolve(doc, holder);
      const schema = schemaOf(doc, holder);
      const sent = Object.entries(response.headers ?? {}).map(([name, one]) => ({ name, type: t('header'), text: resolve(doc, one).description }));
      return part(t('answerStatus', { status }), said(response.description),
        schema && fieldTable(doc, schema, t('answerFields', { status }), false), sent.length > 0 && table(sent, t('headers')),
        shown(t('example'), exampleOf(doc, holder, operation)));
    }),
    errors.length > 0 && part(t('errors'), h('ul', { class: 'errors' }, [...Map.groupBy(errors, (one) => String(one.status ?? ''))]
      .sort(([a], [b]) => a.localeCompare(b)).map(([status, list]) => h('li', {}, status && h('span', { class: 'badge' }, status),
        h('span', { class: 'choices' }, list.map((one) => code(one.code)))))),
      ...Object.values(operation.responses ?? {}).map((one) => resolve(doc, one)).filter((one) => one.content?.['application/problem+json'])
        .map((one) => shown(t('example'), exampleOf(doc, one, operation)))),
    tryIt(base, doc, { id, method, path, parameters: parameters.filter((one) => !headers.includes(one.name)), headers, body: bodySchema,
      sample: exampleOf(doc, operation.requestBody, operation) }),
  ];
}

/** Channels and their operations of an AsyncAPI 3 document, one entry for each operation. */
function sockets(doc) {
  return Object.entries(doc.operations ?? {}).map(([name, raw]) => {
    const operation = resolve(doc, raw);
    const channel = resolve(doc, operation.channel);
    const messages = (operation.messages ?? Object.values(channel.messages ?? {})).map((one) => resolve(doc, one));
    return {
      id: slug(`socket ${name}`), group: SOCKET, method: operation.action === 'send' ? 'SENDS' : 'TAKES', verb: operation.action === 'send' ? 'sends' : 'takes', path: channel.address ?? name,
      summary: operation.summary ?? operation.title ?? channel.summary ?? name, operation,
      words: [SOCKET, name, channel.address, channel.description, operation.summary, operation.description,
        JSON.stringify(messages), ...messages.flatMap((m) => fieldNames(doc, m.payload))].join(' ').toLowerCase(),
      draw: () => drawSocket(doc, operation, channel, messages),
    };
  });
}

function drawSocket(doc, operation, channel, messages) {
  const binding = resolve(doc, channel.bindings?.ws ?? {});
  const security = (operation.security ?? Object.values(doc.servers ?? {}).flatMap((server) => resolve(doc, server).security ?? []))
    .map((one) => resolve(doc, one));
  const closing = Object.entries({ ...doc, ...channel, ...operation })
    .filter(([key, value]) => key.startsWith('x-') && value && typeof value === 'object');
  return [
    prose(channel.description), prose(operation.description),
    security.length > 0 && part(t('credential'), h('ul', { class: 'errors' }, security.map((one) => h('li', {},
      code([one.in, one.name].filter(Boolean).join(' ') || one.type),
      one.description && h('span', { ...ENGLISH, class: 'lead' }, one.description))))),
    binding.headers && part(t('handshakeHeaders'), fieldTable(doc, binding.headers, t('handshakeHeaders'))),
    binding.query && part(t('handshakeQuery'), fieldTable(doc, binding.query, t('handshakeQuery'))),
    ...messages.map((message) => {
      const sample = message.examples?.[0]?.payload ?? (message.payload && example(doc, message.payload, true));
      return part(t('message', { name: message.name ?? message.title ?? '' }), said(message.summary ?? message.description),
        message.payload && fieldTable(doc, message.payload, t('messageFields'), false),
        sample && block(message.name ?? t('answer'), JSON.stringify(sample, null, 2)));
    }),
    ...closing.map(([name, value]) => part(h('span', ENGLISH, name.slice(2).replaceAll('-', ' ')), h('ul', { class: 'errors' },
      Object.entries(value).map(([key, text]) => h('li', {}, code(Array.isArray(value) ? String(text.code ?? text) : key),
        h('span', { ...ENGLISH, class: 'lead' }, String(text?.description ?? (typeof text === 'string' ? text : '')))))))),
  ];
}

const verb = (one) => h('span', { class: `verb verb-${one.method.toLowerCase()}` }, one.verb ? t(one.verb) : one.method);

/** The folded entry; its content is built when it is first opened. */
function entry(one) {
  const content = h('div', { class: 'op-body' });
  one.details = h('details', { class: 'op', id: one.id, dataset: { testid: 'operation' } },
    h('summary', {}, verb(one), h('span', { class: 'op-path', dir: 'ltr' }, breakable(one.path)),
      h('span', { ...ENGLISH, class: 'op-summary' }, one.summary)), content);
  one.details.addEventListener('toggle', () => {
    if (one.details.open && !content.hasChildNodes()) content.append(...one.draw().flat(Infinity).filter(Boolean));
  });
  one.link = h('li', {}, h('a', { href: `#${one.id}`, title: one.summary }, verb(one), h('span', { dir: 'ltr' }, breakable(one.path))));
  return one;
}

/** The heading of a group: a tag of the document, or a text of the page for untagged entries. */
function heading(name) {
  if (name === SOCKET) return { text: t('socket') };
  return name ? { text: name, props: ENGLISH } : { text: t('other') };
}

function draw(all, tagTexts) {
  const groups = [...Map.groupBy(all.map(entry), (one) => one.group)];
  const tags = [...tagTexts.keys()]; // in the document's order; unlisted tags come after, the socket last
  const order = ([name]) => (name === SOCKET ? Infinity : tags.includes(name) ? tags.indexOf(name) : tags.length);
  groups.sort((a, b) => order(a) - order(b));
  $('groups').replaceChildren(...groups.map(([name, list]) => {
    const { text, props } = heading(name);
    const id = `group-${slug(name)}`;
    return h('section', { class: 'group', 'aria-labelledby': id }, h('h2', { ...props, id }, text),
      prose(tagTexts.get(name), 'lead'), list.map((one) => one.details));
  }));
  const open = groups.length < 8 || all.length < 40;
  $('nav').replaceChildren(...groups.map(([name, list]) => {
    const { text, props } = heading(name);
    return h('details', { open }, h('summary', {}, h('bdi', props, text), ' ', h('span', { class: 'empty' }, String(list.length))),
      h('ul', {}, list.map((one) => one.link)));
  }));
}

function search(all) {
  const words = $('search').value.toLowerCase().split(/\s+/).filter(Boolean);
  let hits = 0;
  for (const one of all) {
    const hit = words.every((word) => one.words.includes(word));
    one.details.hidden = one.link.hidden = !hit;
    hits += hit ? 1 : 0;
  }
  for (const group of document.querySelectorAll('.group')) group.hidden = !group.querySelector('.op:not([hidden])');
  for (const branch of $('nav').children) {
    branch.hidden = !branch.querySelector('li:not([hidden])');
    if (words.length) branch.open = true;
  }
  $('search-count').textContent = words.length ? t('hits', { n: hits, all: all.length }) : t('endpointCount', { n: all.length });
}

function openHash() {
  const target = $(decodeURIComponent(location.hash.slice(1)));
  if (!target?.matches('details.op')) return;
  target.open = true;
  target.scrollIntoView({ block: 'start' });
}

/** Everything with texts of the page: drawn at the start, and again in another language. */
function drawPage(doc, all) {
  const open = [...document.querySelectorAll('details.op[open]')].map((details) => details.id);
  const info = doc.info ?? {};
  document.title = `${t('docs')} · ${info.title ?? 'Castellan'}`;
  $('api-title').textContent = info.title ?? 'Castellan';
  $('api-version').textContent = info.version ?? '';
  $('about-text').replaceChildren(...prose(info.summary, 'lead'), ...prose(info.description));
  const fields = credentialFields(doc);
  $('credentials').hidden = !fields.length;
  $('credential-fields').replaceChildren(...fields);
  draw(all, new Map((doc.tags ?? []).map((tag) => [tag.name, tag.description])));
  for (const id of open) $(id).open = true;
  search(all);
}

async function start() {
  languageSwitch($('language'));
  const [rest, socket] = await Promise.allSettled([load('openapi.json'), load('asyncapi.json')]);
  const failed = [rest, socket].filter((one) => one.status === 'rejected').map((one) => one.reason.message);
  $('docs-error').hidden = !failed.length;
  $('docs-error').textContent = failed.join(' · ');
  const doc = rest.value ?? {};
  const all = [...endpoints(doc), ...(socket.value ? sockets(socket.value) : [])];
  drawPage(doc, all);
  $('search').addEventListener('input', () => search(all));
  document.addEventListener('languagechanged', () => drawPage(doc, all));
  addEventListener('hashchange', openHash);
  openHash();
  $('main').dataset.ready = 'true';
}

start();
