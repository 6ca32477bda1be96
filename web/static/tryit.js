/** "Try it": one real request from the page, with the credentials entered above and the curl line that does the same. */

import { h, block, copy } from './dom.js';
import { example, resolve } from './schema.js';
import { t } from './texts.js';

/** Header credentials by header name; tokens in answers are filled in. */
export const credentials = {
  values: new Map(),
  inputs: new Map(),
  take(headers) {
    for (const [name, input] of this.inputs) {
      const token = headers.get(name);
      if (!token) continue;
      this.values.set(name, token);
      input.value = token;
    }
  },
};

const quoted = (text) => `'${String(text).replaceAll("'", `'\\''`)}'`;

/** @param {URL} base @param {object} doc @param {{method: string, path: string, parameters: object[], headers: string[],
 *  body?: object, sample?: object}} operation  headers: names of the credential headers it takes; sample: its example */
export function tryIt(base, doc, operation) {
  const inputs = operation.parameters.map((parameter) => {
    const id = `try-${operation.id}-${parameter.in}-${parameter.name}`;
    const input = h('input', { id, name: parameter.name, dir: 'ltr', autocomplete: 'off', required: parameter.required });
    return { parameter, input, row: h('div', { class: 'field' }, h('label', { for: id, dir: 'ltr' }, `${parameter.name} (${parameter.in})`), input) };
  });
  const bodyId = `try-${operation.id}-body`;
  const body = operation.body && operation.method !== 'GET'
    && h('textarea', { id: bodyId, dir: 'ltr', rows: '8', spellcheck: 'false', autocomplete: 'off', dataset: { testid: 'try-body' } });
  if (body) body.value = JSON.stringify(operation.sample ?? example(doc, operation.body), null, 2);

  const answer = h('div', { class: 'answer', role: 'status', dataset: { testid: 'try-answer' } });
  const send = h('button', { class: 'primary', dataset: { testid: 'try-send' } }, t('send'));
  const curl = h('button', { type: 'button', class: 'quiet' }, t('copyCurl'));

  const request = () => {
    let path = operation.path;
    const query = new URLSearchParams();
    const headers = {};
    for (const { parameter, input } of inputs) {
      if (input.value === '') continue;
      if (parameter.in === 'path') path = path.replace(`{${parameter.name}}`, encodeURIComponent(input.value));
      if (parameter.in === 'query') query.append(parameter.name, input.value);
      if (parameter.in === 'header') headers[parameter.name] = input.value;
    }
    for (const name of operation.headers) if (credentials.values.get(name)) headers[name] = credentials.values.get(name);
    if (body) headers['content-type'] = 'application/json';
    const url = new URL(path.replace(/^\//, ''), base);
    url.search = query;
    return { url, init: { method: operation.method, headers, body: body ? body.value : undefined, cache: 'no-store', credentials: 'omit' } };
  };

  curl.addEventListener('click', async () => {
    const { url, init } = request();
    const line = ['curl', '-i', '-X', init.method, quoted(url), ...Object.entries(init.headers).flatMap(([n, v]) => ['-H', quoted(`${n}: ${v}`)]),
      ...(init.body ? ['-d', quoted(init.body)] : [])].join(' ');
    if (await copy(line)) curl.textContent = t('copied');
    else answer.replaceChildren(block('curl', line));
  });

  const form = h('form', { class: 'tryit', novalidate: true, dataset: { testid: 'try-form' } },
    h('h3', {}, t('tryIt')), inputs.map((one) => one.row),
    body && h('div', { class: 'field' }, h('label', { for: bodyId }, t('bodyJson')), body),
    h('div', { class: 'tryit-buttons' }, send, curl), answer);

  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    send.disabled = true;
    const { url, init } = request();
    const started = performance.now();
    try {
      const response = await fetch(url, init);
      credentials.take(response.headers);
      const text = await response.text();
      let shown = text;
      try { shown = JSON.stringify(JSON.parse(text), null, 2); } catch { /* shown as it came */ }
      answer.replaceChildren(
        h('p', { class: 'answer-head' },
          h('span', { class: response.ok ? 'badge status-good' : 'badge status-bad', dataset: { testid: 'try-status' } }, String(response.status)),
          ` ${Math.round(performance.now() - started)} ms`),
        h('details', {}, h('summary', {}, t('headers')), block(t('headers'), [...response.headers].map((pair) => pair.join(': ')).join('\n'))),
        block(t('answer'), shown, { testid: 'try-result' }));
    } catch (error) {
      answer.replaceChildren(h('p', { class: 'notice bad' }, t('noAnswer', { message: error.message })));
    } finally {
      send.disabled = false;
    }
  });
  return form;
}

/** The credential fields at the top of the page. @param {object} doc @returns {HTMLElement[]} */
export function credentialFields(doc) {
  const schemes = Object.entries(doc.components?.securitySchemes ?? {}).map(([name, scheme]) => ({ name, ...resolve(doc, scheme) }));
  const headers = new Set(schemes.filter((scheme) => scheme.type === 'apiKey' && scheme.in === 'header').map((scheme) => scheme.name));
  return [...headers].map((name) => {
    const id = `credential-${name}`;
    const input = h('input', { id, dir: 'ltr', autocomplete: 'off', spellcheck: 'false', type: 'text' });
    input.value = credentials.values.get(name) ?? '';
    input.addEventListener('input', () => credentials.values.set(name, input.value.trim()));
    credentials.inputs.set(name, input);
    return h('div', { class: 'field' }, h('label', { for: id, dir: 'ltr' }, name), input);
  });
}
