import assert from 'node:assert/strict';
import test, { after } from 'node:test';
import { all, click, close, one, press, search, show, type, until, type Asked } from '../page';
import { List } from 'castellan-console/kit/list';

after(close);

const asked: Asked[] = [];
const page = (from: number) =>
  [0, 1, 2].map((n) => ({
    id: `job${from + n}`,
    type: 'sms',
    status: 'done',
    done: from + n,
  }));

/** Two pages of three jobs. */
function service(request: Asked) {
  asked.push(request);
  if (request.query.cursor === 'second') return { body: page(3) };
  return {
    body: page(0),
    link: '<https://castellan.example/admin/jobs?cursor=second>; rel="next"',
  };
}

let opened = '';
let chosen: string[] = [];
const list = (
  <List
    path="/admin/jobs"
    title="jobs.title"
    columns={[
      { key: 'id', title: 'jobs.job' },
      { key: 'done', title: 'jobs.progress', show: (j) => <b>{j.done}</b> },
      { key: 'failed', title: 'jobs.failed', hidden: true },
    ]}
    filters={[{ name: 'type', title: 'jobs.type' }]}
    id={(j) => j.id}
    open={(j) => (opened = j.id)}
    bulk={(rows) => {
      chosen = rows.map((j) => j.id);
      return null;
    }}
  />
);
const ids = () => all('row').map((row) => row.querySelectorAll('td')[1]?.textContent);
const boxes = () => [...document.querySelectorAll<HTMLInputElement>('input.choose')];
const firstRows = () => until(() => all('row').length === 3);
const firstPage = () => until(() => ids().join() === 'job0,job1,job2');

test('a page, the next one by its cursor, and the first again', async () => {
  await show(list, { service });
  await firstPage();
  await click('next');
  await until(() => ids().join() === 'job3,job4,job5');
  assert.equal(search().cursor, 'second');
  assert.deepEqual(asked.at(-1)?.query, { limit: '100', cursor: 'second' });
  assert.equal(((await one('next')) as HTMLButtonElement).disabled, true);
  press([...document.querySelectorAll('button')].find((b) => b.textContent === 'First page')!);
  await firstPage();
});

test('a filter goes to the address and to the request, and leaves the page', async () => {
  await show(list, { at: '/?cursor=second', service });
  await until(() => ids().join() === 'job3,job4,job5');
  await type('filter-type', ' sms ');
  const input = await one('filter-type');
  input.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }));
  await until(() => search().type === 'sms');
  await until(() => asked.at(-1)?.query.type === 'sms');
  assert.equal(asked.at(-1)?.query.cursor, undefined);
});

test('rows are selected one by one, by range and all, and a selected row is not opened', async () => {
  await show(list, { service });
  await firstPage();
  press(boxes()[0]!);
  await until(() => chosen.join() === 'job0');
  press(boxes()[2]!, true);
  await until(() => chosen.join() === 'job0,job1,job2');
  press(boxes()[1]!);
  await until(() => chosen.join() === 'job0,job2');
  assert.equal(opened, '');
  press(document.querySelector('thead input')!);
  await until(() => chosen.length === 3);
});

test('a range begins at the last selected row, and a deselected row deselects it', async () => {
  await show(list, { service });
  await firstPage();
  press(boxes()[1]!);
  press(boxes()[2]!, true);
  await until(() => chosen.join() === 'job1,job2');
  press(boxes()[1]!, true);
  await until(() => boxes().every((box) => !box.checked));
});

test('a range does not begin at a row of another page', async () => {
  await show(list, { service });
  await firstPage();
  press(boxes()[0]!);
  await until(() => chosen.join() === 'job0');
  await click('next');
  await until(() => ids().join() === 'job3,job4,job5');
  press(boxes()[2]!, true);
  await until(() => chosen.join() === 'job5');
});

test('a column is shown and hidden by the menu, and the browser remembers it', async () => {
  await show(list, { service });
  await firstPage();
  const heads = () => [...document.querySelectorAll('thead th')].map((th) => th.textContent).slice(1);
  const before = heads();
  await click('list-look');
  const items = () => [...document.querySelectorAll<HTMLElement>('[aria-checked]')].slice(1);
  await until(() => items().length === 3);
  press(items()[0]!);
  press(items()[2]!);
  await until(() => heads().length === 2 && heads()[0] === before[1] && heads()[1] !== before[1]);
  await until(() => localStorage.getItem('castellan.columns./admin/jobs jobs.title') === '{"id":false,"failed":true}');
});

test('two lists of one path do not share their columns', async () => {
  const other = (
    <List path="/admin/jobs" title="mailing.title" columns={[{ key: 'id', title: 'jobs.id' }]} id={() => ''} />
  );
  await show(
    <>
      {list}
      {other}
    </>,
    { service },
  );
  await until(() => ids().length === 6);
  const heads = (n: number) => document.querySelectorAll('thead')[n]!.querySelectorAll('th').length;
  await click('list-look');
  const items = () => [...document.querySelectorAll<HTMLElement>('[aria-checked]')].slice(1);
  await until(() => items().length === 3);
  press(items()[0]!);
  await until(() => heads(0) === 2);
  assert.equal(heads(1), 1);
  const kept = Object.keys(localStorage).filter((key) => key.startsWith('castellan.columns'));
  assert.deepEqual(kept, ['castellan.columns./admin/jobs jobs.title']); // only what the user chose
});

test('the CSV has the shown columns and rows, and the name of the list', async () => {
  const saved: { name: string; blob: Blob }[] = [];
  const { createObjectURL } = URL;
  const { click: follow } = HTMLAnchorElement.prototype;
  let blob = new Blob();
  URL.createObjectURL = (of) => ((blob = of as Blob), 'blob:x');
  HTMLAnchorElement.prototype.click = function (this: HTMLAnchorElement) {
    saved.push({ name: this.download, blob });
  };
  try {
    await show(
      <List
        path="/admin/jobs"
        title="jobs.title"
        columns={[
          { key: 'id', title: 'jobs.job', show: (j) => <b>{j.id}</b> },
          { key: 'type', title: 'jobs.type', show: () => 'SMS', text: (j) => `${j.type}, "sent"` },
          { key: 'done', title: 'jobs.progress' },
          { key: 'failed', title: 'jobs.failed', hidden: true },
        ]}
        id={(j) => j.id}
      />,
      { service },
    );
    await firstRows();
    await click('csv');
    assert.equal(saved[0]!.name, 'jobs.csv');
    const lines = [0, 1, 2].map((n) => `"job${n}","sms, ""sent""","${n}"`);
    const want = ['"Job","Type","Progress"', ...lines, ''].join('\r\n');
    assert.equal(await saved[0]!.blob.text(), want); // without the mark
  } finally {
    URL.createObjectURL = createObjectURL;
    HTMLAnchorElement.prototype.click = follow;
  }
});

test('an empty list without filters has no columns to choose and nothing to save', async () => {
  await show(<List path="/admin/jobs" title="jobs.title" columns={[]} id={() => ''} empty="mailing.none" />, {
    service: () => ({ body: [] }),
  });
  await one('empty');
  assert.equal(all('csv').length + all('list-look').length, 0);
});

test('a click or Enter opens a row', async () => {
  opened = '';
  await show(list, { service });
  await firstPage();
  press(all('row')[1]!);
  assert.equal(opened, 'job1');
  all('row')[2]!.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }));
  assert.equal(opened, 'job2');
});

test('a hidden column is not shown', async () => {
  await show(list, { service });
  await firstPage();
  assert.equal(document.querySelectorAll('thead th').length, 3);
});
