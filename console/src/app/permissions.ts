/** What the caller may ask, from the service; the menu and the actions follow it. */
import { read } from './api';
import { session } from './session';

/** Everybody may ask these for himself; here they mean for others. Who may not has "GET /user/get-documents own". */
const forOthers = new Set(['/user/get-documents', '/user/get-kyc-images', '/user/update-document']);

export async function loadPermissions(): Promise<void> {
  const { data } = await read('/auth/permissions', {});
  session.permits(
    (data ?? []).map(
      ({ method, path, asAdmin }) => `${method} ${path}${forOthers.has(path) && !asAdmin ? ' own' : ''}`,
    ),
  );
}
