/**
 * A SharedWorker that holds the session token for all tabs of the console. The token is in memory only: with the last
 * tab the worker ends, and the token with it. Nothing is ever stored.
 */
type Held = { token: string };

const ports = new Set<MessagePort>();
let held: Held = { token: '' };

function tell(port: MessagePort) {
  port.postMessage(held);
}

(self as unknown as { onconnect: (event: MessageEvent) => void }).onconnect = ({ ports: [port] }) => {
  if (!port) return;
  ports.add(port);
  port.onmessage = ({ data }: MessageEvent<Held | 'gone'>) => {
    if (data === 'gone') {
      ports.delete(port);
      return;
    }
    held = { token: String(data.token ?? '') };
    for (const other of ports) if (other !== port) tell(other);
  };
  port.start();
  tell(port);
};
