/**
 * Reads a number as people write it: with a comma or a point for decimals, grouped or not, in Latin, Arabic-Indic or
 * Persian digits. Start at read. The module has no imports, so that a property test can run it without a browser.
 */

/** Digits of an amount before and after the decimal mark (domain/kit/amount). */
const most = 18;

export interface Bounds {
  /** Decimals of the currency. Without it, those of any amount. */
  decimals?: number;
  /** Maximum digits before the decimal mark. Without it, those of any amount. */
  digits?: number;
  /** Code of the currency. It may be before or after the number. */
  unit?: string;
  /** Allows a leading minus. */
  signed?: boolean;
}

/**
 * The reason why a text is not a number within its bounds. character: `of` is not allowed in a number. grouping: the
 * separators are inconsistent.
 */
export type Fault = { fault: 'character'; of: string } | { fault: 'sign' | 'grouping' | 'decimals' | 'range' };

/**
 * A value in plain notation ('' for an empty text), the possible values of an ambiguous text, or the reason for a
 * refusal.
 */
export type Reading = { value: string } | { values: string[] } | Fault;

const invisible = /[\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]/g; // direction marks, which come with pasted text
const otherDigits = /[\u0660-\u0669\u06f0-\u06f9]/g;
const spaces = /[\s\u2000-\u200a]/g; // \s includes no-break spaces
const apostrophes = /[\u2018\u2019\u02bc]/g;

/** The text with one sign for each kind of digit and separator. */
function plain(text: string): string {
  return text
    .replaceAll(invisible, '')
    .replaceAll(otherDigits, (digit) => String(digit.charCodeAt(0) & 15))
    .replaceAll(spaces, ' ')
    .replaceAll(apostrophes, "'")
    .replaceAll('\u060c', ',') // the Arabic comma
    .trim();
}

/** The text without the code of the currency. A code that contains a digit must be separated by a space. */
function bare(text: string, unit = ''): string {
  if (!/[a-z]/i.test(unit)) return text;
  const gap = /\d/.test(unit) ? ' ' : '';
  const [low, code] = [text.toLowerCase(), unit.toLowerCase()];
  if (low.endsWith(gap + code)) return text.slice(0, -code.length).trim();
  if (low.startsWith(code + gap)) return text.slice(code.length).trim();
  return text;
}

// Arabic has its own decimal mark and grouping mark.
const decimalMarks = ['.', ',', '٫'];
const groupMarks = ['.', ',', '٬', ' ', "'"];

/** Whole digits and decimals of a text, if the two marks form a number. Without a group mark it has no groups. */
function parts(text: string, decimal: string, group = ''): [string, string] | undefined {
  const [whole = '', fraction = '', more] = text.split(decimal);
  if (more !== undefined || !/^\d*$/.test(fraction) || (!whole && !fraction)) return undefined;
  if (/^\d*$/.test(whole)) return [whole, fraction];
  const groups = group ? whole.split(group) : [];
  const grouped = /^[1-9]\d{0,2}$/.test(groups[0] ?? '') && groups.slice(1).every((three) => /^\d{3}$/.test(three));
  return grouped ? [groups.join(''), fraction] : undefined;
}

/** The same number without superfluous zeros. */
function short([whole, fraction]: [string, string]): string {
  const decimals = fraction.replace(/0+$/, '');
  return (whole.replace(/^0+(?=\d)/, '') || '0') + (decimals && `.${decimals}`);
}

/** The reason why a value in plain notation is out of bounds. */
export function check(value: string, { decimals = most, digits = most }: Bounds = {}): Fault | undefined {
  const [whole = '', fraction = ''] = value.replace('-', '').split('.');
  if (whole.length > digits) return { fault: 'range' };
  return fraction.length > Math.min(decimals, most) ? { fault: 'decimals' } : undefined;
}

/**
 * Reads a text. A comma or a point followed by exactly three digits may be a group mark or the decimal mark. The
 * reading then has both values, or only the one within the bounds. With both, the user must choose.
 */
export function read(text: string, bounds: Bounds = {}): Reading {
  const typed = plain(text);
  if (typed === '') return { value: '' };
  const written = bare(typed, bounds.unit);
  const sign = /^[-+\u2212]/.exec(written)?.[0] ?? '';
  const number = written.slice(sign.length).trim();
  if ((sign && !bounds.signed) || /[-\u2212]$/.test(number)) return { fault: 'sign' };
  const strange = /[^\d.,٫٬ ']/u.exec(number);
  if (strange) return { fault: 'character', of: strange[0] };
  const found = decimalMarks.flatMap((decimal) =>
    [undefined, ...groupMarks].map((group) => (group === decimal ? undefined : parts(number, decimal, group))),
  );
  const all = [...new Set(found.filter((one) => one !== undefined).map(short))];
  if (all.length === 0) return { fault: 'grouping' };
  const within = all.filter((value) => !check(value, bounds));
  if (within.length === 0) return check(all[0]!, bounds)!;
  const size = (value: string) => value.split('.')[0]!.length;
  const values = within
    .sort((a, b) => size(b) - size(a))
    .map((value) => (sign && sign !== '+' && value !== '0' ? `-${value}` : value));
  return all.length > 1 ? { values } : { value: values[0]! };
}

/**
 * A value for display: its whole part, and its decimals with their mark. Spaces group the digits, because a point or a
 * comma between three digits looks like a decimal mark.
 */
export function grouped(value: string, language: string): [whole: string, decimals: string] {
  const [whole = '', fraction] = value.split('.');
  const mark = language === 'tr' ? ',' : '.';
  return [whole.replaceAll(/\B(?=(\d{3})+$)/g, '\u00a0'), fraction ? mark + fraction : ''];
}

/** The exact sum of amounts in plain notation. */
export function total(amounts: (string | number)[]): string {
  const split = amounts.map((amount) => String(amount).split('.'));
  const scale = Math.max(0, ...split.map(([, decimals = '']) => decimals.length));
  const sum = split.reduce((all, [whole, decimals = '']) => all + BigInt(whole + decimals.padEnd(scale, '0')), 0n);
  const digits = String(sum).padStart(scale + 1, '0');
  return short([digits.slice(0, digits.length - scale), digits.slice(digits.length - scale)]);
}
