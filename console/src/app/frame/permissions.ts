/** The permissions of the caller, from the service. The menu and the actions depend on them. */
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { read } from '../api';
import { session, useSession } from '../session';

/**
 * Every user may call these for their own account; here they mean other accounts. Without that permission the list has
 * "GET /user/get-documents own".
 */
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

/** Reads the permissions after each login, and again when the service refuses a call that the menu offers. */
export function usePermissions() {
  const { doubts } = useSession();
  const queries = useQueryClient();
  useEffect(() => {
    if (doubts) void queries.invalidateQueries({ queryKey: key }, { cancelRefetch: false });
  }, [doubts, queries]);
  return useQuery({ queryKey: key, queryFn: ({ signal }) => load(signal) });
}
