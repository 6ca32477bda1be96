/** What the caller may ask, from the service; the menu and the actions follow it. */
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { read } from './api';
import { session, useSession } from './session';

/** Everybody may ask these for himself; here they mean for others. Who may not has "GET /user/get-documents own". */
const forOthers = new Set(['/user/get-documents', '/user/get-kyc-images', '/user/update-document']);

async function load(signal: AbortSignal): Promise<true> {
  const { data } = await read('/auth/permissions', { signal });
  const all = data ?? [];
  session.permits(
    all.map(({ method, path, asAdmin }) => `${method} ${path}${forOthers.has(path) && !asAdmin ? ' own' : ''}`),
    all.flatMap(({ method, path, action }) => (action ? [[`${method} ${path}`, action]] : [])),
  );
  return true;
}

const key = ['/auth/permissions'];

/** Reads them after each login, and again when the service refused what the menu offers. */
export function usePermissions() {
  const { doubts } = useSession();
  const queries = useQueryClient();
  useEffect(() => {
    if (doubts) void queries.invalidateQueries({ queryKey: key }, { cancelRefetch: false });
  }, [doubts, queries]);
  return useQuery({ queryKey: key, queryFn: ({ signal }) => load(signal) });
}
