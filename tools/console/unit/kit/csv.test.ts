import assert from 'node:assert/strict';
import test from 'node:test';
import { cell, csv, download } from 'castellan-console/kit/csv';

test('a cell is text, and an object is JSON', () => {
  for (const [value, want] of [
    [undefined, '""'],
    [null, '""'],
    ['', '""'],
    [0, '"0"'],
    [false, '"false"'],
    ['plain', '"plain"'],
    [{ a: 1 }, '"{""a"":1}"'],
    [[1], '"[1]"'],
  ] as const)
    assert.equal(cell(value), want);
});

test('a cell is quoted', () => {
  assert.equal(cell('a,b'), '"a,b"');
  assert.equal(cell('say "yes" "no"'), '"say ""yes"" ""no"""');
  assert.equal(cell('a\nb'), '"a\nb"');
  assert.equal(cell('a\rb'), '"a\rb"');
  assert.equal(cell('a;b'), '"a;b"');
});

test('a cell never begins a formula', () => {
  for (const first of [...'=+-@＝＋－＠\t\r\n']) assert.equal(cell(`${first}1`), `"'${first}1"`);
  for (const after of [...',;|:\'،؛ \t\n\u00a0\u3000\u200b\ufeff'])
    for (const sign of [...'=+-@＝＋－＠']) assert.equal(cell(`a${after}${sign}1`), `"a${after}'${sign}1"`);
  assert.equal(cell('Ada;=HYPERLINK(A1)'), `"Ada;'=HYPERLINK(A1)"`);
  assert.equal(cell('a"=1;-2'), `"a""'=1;'-2"`);
  assert.equal(cell(' =1'), `" '=1"`);
  assert.equal(cell(-1), `"'-1"`);
  assert.equal(cell('1=1, a-b'), '"1=1, a-b"');
});

test('lines end with CRLF, the last one too', () => {
  assert.equal(csv(['a', 'b'], [[1, 2], [null, 'x,y']]), '"a","b"\r\n"1","2"\r\n"","x,y"\r\n');
  assert.equal(csv(['a'], []), '"a"\r\n');
});

test('a file is saved by a click on a link to its content, which is then released', async () => {
  const link = { href: '', download: '', clicked: [] as string[], click: () => {} };
  let made: Blob | undefined;
  let released = '';
  link.click = () => link.clicked.push(`${link.href} ${link.download} ${released}`);
  const before = { create: URL.createObjectURL, revoke: URL.revokeObjectURL };
  URL.createObjectURL = (blob) => ((made = blob as Blob), 'blob:1');
  URL.revokeObjectURL = (url) => void (released = url);
  Object.assign(globalThis, { document: { createElement: (tag: string) => (tag === 'a' ? link : undefined) } });
  try {
    download('rows.csv', 'ä\r\n');
  } finally {
    URL.createObjectURL = before.create;
    URL.revokeObjectURL = before.revoke;
    Object.assign(globalThis, { document: undefined });
  }
  assert.deepEqual(link.clicked, ['blob:1 rows.csv ']);
  assert.equal(released, 'blob:1');
  assert.equal(made?.type, 'text/csv;charset=utf-8');
  assert.deepEqual([...new Uint8Array(await made!.arrayBuffer())], [0xef, 0xbb, 0xbf, 0xc3, 0xa4, 13, 10]);
});
