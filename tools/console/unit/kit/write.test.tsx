import assert from 'node:assert/strict';
import test, { after } from 'node:test';
import { all, click, close, one, show, type, until, type Answer, type Asked } from '../page';
import { Write } from 'castellan-console/kit/write';

after(close);

const path = '/blockage/insert-blockage';
const asked: Asked[] = [];
let answers: Answer[] = [];
function service(request: Asked): Answer {
  asked.push(request);
  return answers.shift() ?? { body: { data: {} } };
}

let done = 0;
const form = (
  <Write
    method="post"
    path={path}
    title="money.block"
    fields={[
      { name: 'userId', title: 'money.user', required: true },
      { name: 'amount', title: 'money.amount', kind: 'money', required: true },
      { name: 'description', title: 'money.reason', kind: 'area', when: (v) => v.userId === 'U1' },
    ]}
    fixed={{ blockTypeId: 7 }}
    initial={{ currencyCode: 'BTC' }}
    onDone={() => done++}
  />
);
const button = async () => (await one('send')) as HTMLButtonElement;

async function open() {
  asked.length = 0;
  done = 0;
  await show(form, { may: [`POST ${path}`], service });
  await click(`write-${path}`);
}

test('without the permission there is no button', async () => {
  await show(<div data-testid="here">{form}</div>, { service });
  await one('here');
  assert.equal(all(`write-${path}`).length, 0);
});

test('the form is sent when its required fields have values', async () => {
  await open();
  assert.equal((await button()).disabled, true);
  assert.equal(all('field-description').length, 0);
  await type('field-userId', 'U1');
  await one('field-description');
  await type('field-amount', '1,5');
  await until(() => !all('send')[0]?.hasAttribute('disabled'));
  await click('send');
  await until(() => done === 1);
  assert.deepEqual(asked[0]?.body, { blockTypeId: 7, userId: 'U1', amount: '1.5' });
  await until(() => all('send').length === 0); // closed
});

test('after a refusal the input stays, with the refusal beside its field', async () => {
  await open();
  const message = 'the user does not exist';
  answers = [
    { status: 400, body: { code: 'INVALID_FIELD', message, requestId: 'R1', errors: [{ field: 'userId', message }] } },
  ];
  await type('field-userId', 'U2');
  await type('field-amount', '2');
  await until(() => !all('send')[0]?.hasAttribute('disabled'));
  await click('send');
  await until(() => document.querySelector('.mantine-InputWrapper-error')?.textContent === message);
  assert.equal(done, 0);
  assert.equal(((await one('field-userId')) as HTMLInputElement).value, 'U2');
  await click('send');
  await until(() => done === 1);
  assert.equal(asked.length, 2);
});

test('a second click while the write is under way sends nothing', async () => {
  await open();
  await type('field-userId', 'U3');
  await type('field-amount', '3');
  await until(() => !all('send')[0]?.hasAttribute('disabled'));
  const send = await button();
  send.click();
  send.click();
  await until(() => done > 0);
  assert.equal(asked.length, 1);
});
