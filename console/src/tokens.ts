/**
 * A SharedWorker that holds the session token for all tabs of the console. The token is in memory only: with the last
 * tab the worker ends, and the token with it. Nothing is ever stored.
 */
/** What a tab says and hears: a login, the end of a token and how it came, a touch. 'gone': the tab is closed. */
type Said = { token?: string; end?: string; why?: string; touched?: number } | 'gone';

const ports = new Set<MessagePort>();
let token = '';
let touched = 0;

(self as unknown as { onconnect: (event: MessageEvent) => void }).onconnect = ({ ports: [port] }) => {
  if (!port) return;
  ports.add(port);
  port.onmessage = ({ data }: MessageEvent<Said>) => {
    if (data === 'gone') {
      ports.delete(port);
      if (ports.size === 0) token = ''; // the browser may keep this worker for the page that is read anew
      return;
    }
    if (data.end !== undefined) {
      if (data.end !== token) return; // a slow tab ends what another one has replaced
      token = '';
    }
    token = data.token ?? token;
    touched = data.touched ?? touched;
    // To all of them, so that all hear of two logins in the same order.
    for (const each of ports) each.postMessage(data);
  };
  port.start();
  port.postMessage({ token, touched });
};
