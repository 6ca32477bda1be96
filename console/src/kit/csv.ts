import { textOf } from './show';

// The signs of domain/kit/sheet, whose test compares the lists: what begins a formula, and after what a cell may begin,
// besides blanks, controls and invisible characters.
const FORMULAS = `=+-@＝＋－＠`;
const SEPARATORS = `,;|:"'،؛`;
const formula = new RegExp(
  `(^|[${SEPARATORS}\\p{White_Space}\\p{Cc}\\p{Cf}])([${FORMULAS.replace('-', '\\-')}])`,
  'gu',
);

/** A quoted cell of CSV (RFC 4180). An apostrophe precedes each sign that a spreadsheet could take for a formula. */
export function cell(value: unknown): string {
  const text = textOf(value)
    .replace(formula, "$1'$2")
    .replace(/^[\t\r\n]/, "'$&");
  return `"${text.replaceAll('"', '""')}"`;
}

export function csv(head: string[], rows: unknown[][]): string {
  return [head, ...rows].map((row) => row.map(cell).join(',')).join('\r\n') + '\r\n';
}

export function download(name: string, text: string): void {
  save(name, `\ufeff${text}`, 'text/csv;charset=utf-8');
}

/** Saves a text as a file. */
export function save(name: string, text: string, type: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
