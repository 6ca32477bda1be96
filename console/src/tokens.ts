/**
 * A SharedWorker that holds the session token for all tabs of the console, in memory only. The worker and the token
 * end with the last tab. Nothing is stored.
 */
import { endsToken, type Cause } from './claims';

/**
 * The messages between a tab and the worker: a login, a renewal with the token that it replaced, the end of a token
 * with its cause, a touch. 'gone': the tab is closed.
 */
type Said =
  { token?: string; old?: string; ends?: number; skew?: number; end?: string; why?: Cause; touched?: number } | 'gone';

const ports = new Set<MessagePort>();
let token = '';
let ends = 0;
let skew: number | undefined;
let touched = 0;

(self as unknown as { onconnect: (event: MessageEvent) => void }).onconnect = ({ ports: [port] }) => {
  if (!port) return;
  ports.add(port);
  port.onmessage = ({ data }: MessageEvent<Said>) => {
    if (data === 'gone') {
      ports.delete(port);
      if (ports.size === 0) token = ''; // the browser may keep this worker for a reloaded page
      return;
    }
    if (data.end !== undefined) {
      if (!endsToken(data.end, data.why ?? 'over', token)) return; // a slow tab ends what another tab has replaced
      token = '';
    }
    if (data.old !== undefined && data.old !== token) return; // the session has ended meanwhile
    if (data.token !== undefined) {
      token = data.token;
      ends = data.ends ?? 0;
      skew = data.skew;
    }
    touched = data.touched ?? touched;
    // Sent to all tabs, so that all receive two logins in the same order.
    for (const each of ports) each.postMessage(data);
  };
  port.start();
  port.postMessage({ token, ends, skew, touched });
};
