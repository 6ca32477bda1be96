/**
 * Loads the scripts that are not part of the first page. A failed load can be repeated on the same page.
 *
 * Chromium keeps a failed import, of the file or of one that it imports, for the life of the page. Therefore all files
 * are fetched before the import, which then finds them in the browser's cache.
 */
import { t } from 'i18next';
import { Refusal } from './api';

/** The form in which the bundler names another file in its output. */
const imported = /(?:from|import)\s*["'](\.\/[\w-]+\.js)["']/g;

const fetched = new Set<string>();

/** Fetches a file and all its imports. */
async function arrive(url: string, under = new Set<string>()): Promise<void> {
  if (fetched.has(url) || under.has(url)) return;
  under.add(url);
  const answer = await fetch(url);
  // Each version of the service has its own file names.
  if (answer.status === 404) throw new Refusal(404, 'NEW_VERSION', t('problem.version'));
  if (!answer.ok) throw new Refusal(0, `HTTP_${answer.status}`, '');
  const names = [...(await answer.text()).matchAll(imported)].map(([, name]) => new URL(name!, url).href);
  await Promise.all(names.map((name) => arrive(name, under)));
  fetched.add(url);
}

const failures = new Map<string, number>();

/**
 * The module that load imports, as `() => import('./screen')`. Throws a refusal with the reason if it cannot be
 * loaded.
 */
export async function script<T>(load: () => Promise<T>): Promise<T> {
  const file = /import\(["'](\.\/[\w-]+\.js)["']\)/.exec(String(load))?.[1];
  if (!file) throw new TypeError(`not an import: ${String(load)}`);
  const url = new URL(file, import.meta.url).href;
  await arrive(url);
  const failed = failures.get(url) ?? 0;
  try {
    return await (failed ? (import(`${url}?again=${failed}`) as Promise<T>) : load());
  } catch (error) {
    failures.set(url, failed + 1); // this name would fail again
    throw Refusal.of(error);
  }
}
