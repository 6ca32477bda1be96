/** The address of a screen: its search, which is texts by name, and the id in its path. */
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';

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
