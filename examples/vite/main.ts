import { CastellanClient } from '@castellan/client';
import { SessionKey } from '@castellan/client/key';
import { logIn } from './login.js';

// VITE_CASTELLAN=https://id.example.com npm run build
const baseUrl: string = import.meta.env.VITE_CASTELLAN ?? 'http://localhost:8080';
const client = new CastellanClient({ baseUrl, key: new SessionKey() });

const form = (id: string) => document.querySelector<HTMLFormElement>(`#${id}`)!;
const show = (text: string) => (document.querySelector('#state')!.textContent = text);
const value = (of: HTMLFormElement, name: string) => String(new FormData(of).get(name));

async function welcome(): Promise<void> {
  const sessions = await client.sessions();
  form('login').hidden = form('answer').hidden = true;
  show(`You are logged in. Open sessions: ${sessions.length}`);
}

form('login').addEventListener('submit', (event) => {
  event.preventDefault();
  const credentials = { email: value(form('login'), 'email'), password: value(form('login'), 'password') };
  logIn(client, credentials, (methods, error) => {
    form('login').hidden = true;
    form('answer').hidden = false;
    const choice = form('answer').querySelector('select')!;
    choice.replaceChildren(...methods.map((one) => new Option(`Code by ${one.name}`, one.id)));
    show(error ? `${error.message} (${error.attemptsLeft} attempts left)` : '');
    return new Promise((resolve) => {
      form('answer').onsubmit = (answer) => {
        answer.preventDefault();
        const method = methods.find((one) => one.id === choice.value)!;
        resolve({ method, code: value(form('answer'), 'code') });
      };
    });
  })
    .then(welcome)
    .catch((error: Error) => show(error.message));
});

// After a reload the browser has the session's key and token.
if (await client.resume()) await welcome();
