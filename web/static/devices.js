/** The authenticator beside the demonstration page. It is the page /authenticator itself, in a frame. */

import { loadDevice } from './castellan-device.js';
import { $ } from './dom.js';

/** Loads the frame when it is opened, and opens it if this browser is a device already. @param {URL} base */
export async function startDevices(base) {
  const here = $('device-here'), frame = $('device-frame');
  here.addEventListener('toggle', () => { if (here.open && !frame.src) frame.src = new URL('authenticator', base); });
  try {
    here.open = Boolean(await loadDevice());
  } catch { /* storage can be switched off: there is no device then */ }
}
