/** One answer of the service, read once and cached while it is fresh. */
import { useQuery, type UseQueryResult } from '@tanstack/react-query';
import type { paths } from '../api';
import { ask, type Gets } from '../app/api';

/** The answer of an endpoint. */
export type Answer<P extends Gets> = paths[P] extends {
  get: { responses: { 200: { content: { 'application/json': infer T } } } };
}
  ? T
  : never;
/** The query of an endpoint. */
export type Query<P extends Gets> = paths[P] extends { get: { parameters: { query?: infer Q } } }
  ? NonNullable<Q>
  : never;

interface ReadOptions<T> {
  enabled?: boolean;
  /** The interval of repeated reads in milliseconds; it may depend on the last answer. */
  every?: number | false | ((last: T | undefined) => number | false);
  places?: Record<string, string>;
}

/** Reads an endpoint. A write that touches its path reads it again. places fill {names} in the path. */
export function useRead<P extends Gets>(
  path: P,
  query?: Query<P>,
  { enabled = true, every, places }: ReadOptions<Answer<P>> = {},
): UseQueryResult<Answer<P>> {
  return useQuery({
    queryKey: [path, query ?? {}, places ?? {}],
    enabled,
    refetchInterval:
      typeof every === 'function' ? (known) => every(known.state.data as Answer<P> | undefined) : (every ?? false),
    queryFn: ({ signal }) => ask<Answer<P>>(path, { query, path: places }, signal),
  });
}
