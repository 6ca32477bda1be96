// The page of the shop. It has its own origin and keeps the session in memory. The withdrawal is one call of
// client.guarded: the rest of this file shows the challenge.
import { CastellanClient } from './castellan-client.js';

const $ = (id) => document.getElementById(id);
const { castellan } = await (await fetch('settings.json')).json();
const client = new CastellanClient({ baseUrl: castellan });
$('authenticator').href = `${castellan}/authenticator`;
$('outbox').href = `${castellan}/dev/outbox/page`;

let flow; // the challenge that is open
let clock;

function show(id) {
  for (const step of ['login', 'withdraw', 'challenge', 'result']) $(step).hidden = step !== id;
  clearInterval(clock);
  document.body.dataset.step = id;
  $(`${id}-title`)?.focus();
}

function say(text) {
  $('notice').textContent = text;
}

function part(name, text) {
  const element = document.createElement(name);
  element.textContent = text;
  return element;
}

/** Shows a challenge: what it approves, the number to repeat in the authenticator, and a field for each code. */
function ask(opened) {
  flow = opened;
  say('');
  $('rows').replaceChildren(...flow.rows.flatMap(({ label, value }) => [part('dt', label), part('dd', value)]));
  $('methods').replaceChildren(...flow.methods.map(methodRow));
  show('challenge');
  const tick = () => {
    $('clock').textContent = `${Math.max(0, Math.ceil((flow.expiresAt - Date.now()) / 1000))} s`;
  };
  tick();
  clock = setInterval(tick, 1000);
  flow.addEventListener('error', () => say('No connection. The shop asks again by itself.'));
  flow.addEventListener('transport', ({ detail }) => detail.name === 'socket' && say(''));
}

function methodRow(method) {
  const row = document.createElement('li');
  row.dataset.method = method.name;
  if (method.name === 'PUSH') {
    row.append('Approve in the authenticator');
    if (method.matchNumber) {
      const number = document.createElement('span');
      number.className = 'number';
      number.textContent = method.matchNumber;
      row.append(' and repeat the number ', number);
    }
    return row;
  }
  const form = document.createElement('form');
  const label = document.createElement('label');
  const input = document.createElement('input');
  const button = document.createElement('button');
  const note = document.createElement('p');
  label.append(`Code by ${method.name}${method.hint ? ` to ${method.hint}` : ''} `, input);
  input.inputMode = 'numeric';
  input.autocomplete = 'one-time-code';
  input.required = true;
  button.textContent = 'Send the code';
  note.setAttribute('role', 'status');
  form.append(label, button, note);
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    try {
      await flow.complete(method.id, method.name, input.value.trim());
    } catch (error) {
      note.textContent = error.message;
    }
  });
  row.append(form);
  return row;
}

function result(title, text) {
  say('');
  $('result-title').textContent = title;
  $('result-text').textContent = text;
  show('result');
}

$('login').addEventListener('submit', async (event) => {
  event.preventDefault();
  try {
    const opened = await client.login({
      countryCode: $('country').value, phoneNumber: $('phone').value, password: $('password').value,
    });
    $('password').value = '';
    ask(opened);
    const { success, message } = await opened.done;
    show(success ? 'withdraw' : 'login');
    say(success ? '' : message ?? 'The login was denied.');
  } catch (error) {
    show('login');
    say(error.message);
  }
});

$('withdraw').addEventListener('submit', async (event) => {
  event.preventDefault();
  const order = new URLSearchParams({ amount: $('amount').value, iban: $('iban').value });
  try {
    const answer = await client.guarded(`/withdrawals?${order}`, { method: 'POST' }, ask);
    if (!answer.ok) return void result('Not paid out', await answer.text());
    const { withdrawal, amount, iban } = await answer.json();
    result('Paid out', `Withdrawal ${withdrawal}: ${amount} EUR to ${iban}`);
  } catch (error) {
    result('Not paid out', `${error.message} (${error.code ?? 'NETWORK'})`);
  }
});

$('cancel').addEventListener('click', () => flow.close());
$('again').addEventListener('click', () => show(client.xAuth ? 'withdraw' : 'login'));
show('login');
document.body.dataset.ready = 'true';
