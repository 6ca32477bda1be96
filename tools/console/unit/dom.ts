// The names of a browser's page, by happy-dom. Requests and answers stay those of Node.
import { Window } from 'happy-dom';

const page = new Window({ url: 'https://castellan.example/console' });
const own = ['document', 'location', 'navigator', 'history', 'localStorage', 'Event', 'CustomEvent', 'EventTarget'];
const kept = new Set(['fetch', 'Request', 'Response', 'Headers', 'URL', 'URLSearchParams', 'Blob', 'File', 'FormData']);

for (const name of Object.getOwnPropertyNames(page)) {
  if (kept.has(name) || (name in globalThis && !own.includes(name))) continue;
  const value: unknown = Reflect.get(page, name);
  Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
}
Object.assign(page.document, { fonts: new page.EventTarget() }); // a field that grows waits for fonts
Object.assign(globalThis, { window: globalThis, self: globalThis });
for (const name of ['getComputedStyle', 'matchMedia', 'addEventListener', 'removeEventListener', 'dispatchEvent']) {
  const method = Reflect.get(page, name) as (...values: unknown[]) => unknown;
  Object.defineProperty(globalThis, name, { value: method.bind(page), configurable: true, writable: true });
}
