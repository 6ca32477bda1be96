/** A query with a body: the endpoint writes nothing, so it is used like a read. */
import { useQuery, type UseQueryResult } from '@tanstack/react-query';
import type { paths } from '../api';
import { start, type Body, type Writes } from '../app/api';

/** The answer of a POST. */
export type Reply<P extends keyof paths> = paths[P] extends {
  post: { responses: { 200: { content: { 'application/json': infer T } } } };
}
  ? T
  : never;

/** Sends the query once there is a body, and again when the body changes. */
export function useAnswer<P extends Writes<'post'> & keyof paths>(
  path: P,
  body: Body<P, 'post'> | undefined,
): UseQueryResult<Reply<P>> {
  return useQuery({
    queryKey: [path, body],
    enabled: body !== undefined,
    queryFn: async () => (await (await start('post', path, body!)).done).data as Reply<P>,
  });
}
