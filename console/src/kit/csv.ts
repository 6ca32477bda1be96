import { textOf } from './show';

/** CSV of the shown rows (RFC 4180). A cell that a spreadsheet would run as a formula starts with an apostrophe. */
export function cell(value: unknown): string {
  let text = textOf(value);
  if (/^[=+\-@\t\r]/.test(text)) text = `'${text}`;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
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
