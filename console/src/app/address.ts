/** The address of a screen: its search, which is texts by name, and the id in its path. */
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import type { Gets } from './api';
import type { Query } from '../kit/read';

/** A search with these names. Every screen has those of its drawers. */
export type Names<N extends string = never> = { [K in N | 'open' | 'form']?: string };
/** The search of a list of an endpoint: its query, and further names. tsc fails when a name leaves the interface. */
export type Listed<P extends Gets, N extends string = never> = Names<N | (keyof Query<P> & string)>;

/**
 * The search of each screen, by path. The router's types are built from it (router.tsx), so that tsc checks the
 * address of a link. An area adds its screens in its screens.ts.
 */
export interface Searches {
  '/': Names;
  '/jobs': Listed<'/admin/jobs'>;
  '/jobs/$id': Names;
  '/cluster': Names;
  '/setup': Names;
  '/parameters': Listed<'/admin/get-parameters'>;
  '/audit': Listed<'/admin/audit'>;
}
/** The path of a screen. */
export type Path = keyof Searches;
/** The path of a screen without an id. */
export type PlainPath = Exclude<Path, `${string}/$id`>;

/** The address of a screen that is chosen at run time. placeOf checks its names. */
export interface Place {
  to: string;
  search?: Search;
}

export function placeOf<P extends Path>(to: P, search?: Searches[P], id = ''): Place {
  return { to: to.replace('$id', () => id), search };
}

/** A name has a text, or is missing. */
export type Search = Record<string, string | undefined>;

/** The one schema of every search: other types become text, and a name without a value is left out. */
export function texts(search: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(search)
      .filter(([, v]) => v !== undefined && v !== '')
      .map(([k, v]) => [k, typeof v === 'string' ? v : JSON.stringify(v)]),
  );
}

/** The search of the address, as `texts` parsed it. */
export function useTexts(): Search {
  return useSearch({ strict: false });
}

/** The search of the address, and a function that changes some names of it; undefined removes one. */
export function useAddress(): [Search, (next: Search) => void] {
  const search = useTexts();
  const navigate = useNavigate();
  return [search, (next) => void navigate({ to: '.', search: (old: Search) => ({ ...old, ...next }) })];
}

/** The id in the path of the screen; '' where it has none. */
export function useId(): string {
  const { id = '' }: { id?: string } = useParams({ strict: false });
  return id;
}
