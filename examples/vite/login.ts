import { CastellanError, type CastellanClient, type Method } from '@castellan/client';

/** Logs in. `ask` gets the methods that may be answered, and the refusal of the last code if it was wrong. */
export async function logIn(
  client: CastellanClient,
  credentials: { email: string; password: string },
  ask: (methods: Method[], error?: CastellanError) => Promise<{ method: Method; code: string }>,
): Promise<void> {
  const flow = await client.login(credentials);
  let over = false;
  let error: CastellanError | undefined;
  while (!over) {
    const open = flow.methods.filter((one) => !one.complete && one.name !== 'PUSH');
    if (open.length === 0) break; // a device answers a PUSH
    const { method, code } = await ask(open, error);
    try {
      const answer = await flow.complete(method.id, method.name, code);
      [over, error] = [Boolean(answer.execResult), undefined];
    } catch (refused) {
      if (!(refused instanceof CastellanError) || refused.code !== 'OTP_INVALID') throw refused;
      error = refused;
    }
  }
  const { success, message } = await flow.done;
  if (!success) throw new Error(message);
}
