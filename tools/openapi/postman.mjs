// Runs the pre-request script of docs/clients.md (its path is the argument) with the functions of Postman that it uses,
// then sends one request with the header that the script set.

import { readFile } from 'node:fs/promises';

const { BASE_URL: baseUrl, EMAIL: email, PASSWORD: password } = process.env;
const text = await readFile(process.argv[2], 'utf8');
const script = text.split('## Postman')[1].match(/```js\n([^]*?)```/)[1];
const values = new Map(Object.entries({ baseUrl, email, password }));
const headers = {};
const pm = {
  variables: { get: (name) => values.get(name), toObject: () => Object.fromEntries(values) },
  collectionVariables: { set: (name, value) => values.set(name, value) },
  request: { headers: { upsert: ({ key, value }) => (headers[key] = value) } },
  async sendRequest(sent) {
    const { url = sent, method, header, body } = sent;
    const response = await fetch(url, { method, headers: header, body: body?.raw });
    const answer = await response.text();
    return { headers: response.headers, json: () => JSON.parse(answer) };
  },
};
const run = () => new Function('pm', `return (async () => {${script}})()`)(pm);
await run();
const first = values.get('apiKey');
await run(); // uses the token of the first
const sessions = await fetch(`${baseUrl}/auth/sessions`, { headers });
if (!first || first !== headers['x-auth'] || sessions.status !== 200) throw new Error(`sessions: ${sessions.status}`);
