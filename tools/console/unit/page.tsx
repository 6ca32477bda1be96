// A page without a browser: a DOM, the English texts, a session with permissions, and a service that a test answers.
// It is imported before every component, because some read the page when they are loaded.
import './dom';
import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import {
  createMemoryHistory,
  createRootRoute,
  createRouter,
  RouterProvider,
  type AnyRouter,
} from '@tanstack/react-router';
import i18next from 'i18next';
import { session } from 'castellan-console/app/session';
import english from 'castellan-console/text/en';
import type { ReactNode } from 'react';
import { createRoot, type Root } from 'react-dom/client';
import { initReactI18next } from 'react-i18next';

export interface Asked {
  method: string;
  path: string;
  query: Record<string, string>;
  body: unknown;
}

/** The answer of the service to a request: its status, its body, and the Link header of a page. */
export interface Answer {
  status?: number;
  body: unknown;
  link?: string;
}

let answer: (asked: Asked) => Answer = ({ path }) => ({ status: 404, body: { code: 'NOT_FOUND', message: path } });
let root: Root | undefined;
let router: AnyRouter;

globalThis.fetch = async (input, init) => {
  const request = input instanceof Request ? input : new Request(new URL(String(input), location.href), init);
  const url = new URL(request.url);
  const text = await request.text();
  const {
    status = 200,
    body,
    link,
  } = answer({
    method: request.method,
    path: url.pathname,
    query: Object.fromEntries(url.searchParams),
    body: text ? JSON.parse(text) : undefined,
  });
  const headers = { 'content-type': 'application/json', ...(link ? { link } : {}) };
  return new Response(JSON.stringify(body), { status, headers });
};

/** Shows a component at an address, for a user with these permissions. The service answers by `service`. */
export async function show(
  element: ReactNode,
  { at = '/', may = [], service }: { at?: string; may?: string[]; service?: (asked: Asked) => Answer } = {},
) {
  root?.unmount();
  localStorage.clear();
  await i18next.use(initReactI18next).init({
    lng: 'en',
    resources: { en: { translation: english } },
    interpolation: { escapeValue: false },
    keySeparator: false,
    nsSeparator: false,
  });
  session.begin(`x.${btoa(JSON.stringify({ sub: '01JD3XE5GN2D2R8A5PKM9C1YQF' }))}.x`);
  session.permits(may, []);
  if (service) answer = service;
  router = createRouter({
    routeTree: createRootRoute({ component: () => element }),
    history: createMemoryHistory({ initialEntries: [at] }),
    parseSearch: (text) => Object.fromEntries(new URLSearchParams(text)),
    stringifySearch: (search) => {
      const set = Object.entries(search as Record<string, string | undefined>).filter(([, v]) => v !== undefined);
      return set.length > 0 ? `?${new URLSearchParams(set as [string, string][]).toString()}` : '';
    },
  });
  document.body.innerHTML = '<div id="page"></div>';
  root = createRoot(document.getElementById('page')!);
  root.render(
    <MantineProvider env="test">
      <QueryClientProvider client={new QueryClient({ defaultOptions: { queries: { retry: false, gcTime: Infinity } } })}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </MantineProvider>,
  );
  await until(() => document.getElementById('page')!.childNodes.length > 0);
}

/** Ends the page, so that no timer keeps the process. */
export function close() {
  root?.unmount();
  root = undefined;
}

/** The search of the address. */
export const search = () => router.state.location.search as Record<string, string>;

/** Waits until the condition holds. It fails after five hundred turns of the event loop. */
export async function until(holds: () => unknown): Promise<void> {
  for (let turn = 0; turn < 500; turn++) {
    if (holds()) return;
    await new Promise((next) => setTimeout(next, 1));
  }
  throw new Error(`not reached: ${String(holds)}\n${document.body.textContent ?? ''}`);
}

/** The elements with this test id. */
export const all = (id: string) => [...document.querySelectorAll<HTMLElement>(`[data-testid="${id}"]`)];

/** The element with this test id, once it is there. */
export async function one(id: string): Promise<HTMLElement> {
  await until(() => all(id).length > 0);
  return all(id)[0]!;
}

export async function click(id: string, shiftKey = false): Promise<void> {
  press(await one(id), shiftKey);
}

export function press(element: Element, shiftKey = false): void {
  element.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true, shiftKey }));
}

/** Types a text instead of the one in the field. */
export async function type(id: string, text: string): Promise<void> {
  const field = (await one(id)) as HTMLInputElement;
  const proto = field.tagName === 'TEXTAREA' ? HTMLTextAreaElement.prototype : HTMLInputElement.prototype;
  Object.getOwnPropertyDescriptor(proto, 'value')!.set!.call(field, text);
  field.dispatchEvent(new Event('input', { bubbles: true }));
}
