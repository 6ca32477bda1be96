/** What the caller may ask, from the service; the menu and the actions follow it. */
import { read } from './api';
import { session } from './session';

export async function loadPermissions(): Promise<void> {
  const { data } = await read('/auth/permissions', {});
  session.permits((data ?? []).map(({ method, path }) => `${method} ${path}`));
}
