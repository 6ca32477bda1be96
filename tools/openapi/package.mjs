// An integrator's program with the package @castellan/client and the login of examples/vite, compiled beside it: log in
// after a wrong code, list the sessions, log out. Each failed step ends the program with an error.

import { CastellanClient } from '@castellan/client';
import { logIn } from './login.js';

const { BASE_URL: baseUrl, EMAIL: email, PASSWORD: password } = process.env;
const client = new CastellanClient({ baseUrl });
let refusal;
await logIn(client, { email, password }, async (methods, error) => {
  const outbox = await fetch(`${baseUrl}/dev/outbox?to=${encodeURIComponent(email)}`);
  const [{ code }] = await outbox.json();
  refusal ??= error;
  const wrong = code.replace(/.$/, (digit) => (Number(digit) + 1) % 10);
  return { method: methods.find((one) => one.name === 'MAIL'), code: error ? code : wrong };
});
if (!(refusal?.attemptsLeft > 0)) throw new Error('the wrong code was not refused');
if (!(await client.sessions()).some((session) => session.current)) throw new Error('this session is missing');
await client.logout();
