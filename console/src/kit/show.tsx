/** The display of values: money as the service wrote it, times in the operator's zone, ids that can be copied. */
import { Badge, Code, CopyButton, Text, VisuallyHidden } from '@mantine/core';
import { IconCheck, IconCopy } from '@tabler/icons-react';
import type { TFunction } from 'i18next';
import { createContext, useContext, type ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import './kit.css';
import { useNow } from './now';

/** The most decimals of the amounts of a column, whose decimal marks are below each other. */
export const Decimals = createContext(0);

/** Decimals of an amount of the service. A number with an exponent has none to align. */
export const decimalsIn = (amount: unknown) => /^-?\d+\.(\d+)$/.exec(textOf(amount))?.[1]?.length ?? 0;

/**
 * The exact string of the service (app/api.ts keeps it). No screen calculates with it. The digits before the decimal
 * point are grouped by space between them, and shorter decimals get room after them in a column. Neither is a
 * character, so a copied amount is still the string of the service.
 */
export function Money({ amount, unit }: { amount?: string | number | null; unit?: string | null }) {
  const most = useContext(Decimals);
  if (amount === undefined || amount === null) return <Nothing />;
  const [, head = '', rest = ''] = /^(-?\d*)(.*)$/s.exec(String(amount)) ?? [];
  const own = decimalsIn(String(amount));
  return (
    <bdi dir="ltr" className="money">
      {grouped(head)}
      {rest}
      {own < most && <span className="pad" data-pad={(own ? '' : '.') + '0'.repeat(most - own)} />}
      {unit ? (
        <>
          {' '}
          <span className="unit">{unit}</span>
        </>
      ) : (
        ''
      )}
    </bdi>
  );
}

/** Groups of three digits. */
function grouped(digits: string): ReactNode {
  if (digits.replace('-', '').length < 4) return digits;
  const groups = digits.split(/(?<=\d)(?=(?:\d{3})+$)/);
  return groups.map((group, n) => (
    <span key={n} className={n > 0 ? 'digits' : undefined}>
      {group}
    </span>
  ));
}

export interface Option {
  value: string;
  label: string;
}

/** The options of a choice. A state is shown by its name in the dictionary of states, never by its wire word. */
export const labelled = (options: readonly (string | Option)[], t: TFunction): Option[] =>
  options.map((o) => (typeof o === 'string' ? { value: o, label: t(`state.${o}`, { defaultValue: o }) } : o));

/** An instant of the service: RFC 3339, or milliseconds since 1970. */
export type Instant = string | number | null | undefined;

const dates = new Map<string, Intl.DateTimeFormat>();

/**
 * The date format of a language, in the Gregorian calendar and the operator's zone. Cached, because a list needs
 * hundreds.
 */
export function dateFormat(language: string, timeStyle?: 'short' | 'medium'): Intl.DateTimeFormat {
  const name = language + (timeStyle ?? '');
  let known = dates.get(name);
  if (!known) {
    known = new Intl.DateTimeFormat(`${language}-u-ca-gregory`, { dateStyle: 'medium', timeStyle });
    dates.set(name, known);
  }
  return known;
}

const spansOf = new Map<string, Intl.RelativeTimeFormat>();

/** The format of spans in a language. Cached like dateFormat. */
function relativeFormat(language: string): Intl.RelativeTimeFormat {
  let known = spansOf.get(language);
  if (!known) {
    known = new Intl.RelativeTimeFormat(language, { style: 'short', numeric: 'auto' });
    spansOf.set(language, known);
  }
  return known;
}

/** A day of UTC, in the language of the page. */
export function Day({ of }: { of: string }) {
  const { i18n } = useTranslation();
  const day = of.slice(0, 10);
  // Noon of the operator's own zone has the same day of the month in the format of that zone.
  return (
    <time dateTime={day}>
      <bdi>{dateFormat(i18n.language).format(new Date(`${day}T12:00`))}</bdi>
    </time>
  );
}

/** An instant of the service in UTC, shown beside the operator's own time. */
export function inUTC(at: string): string {
  return `${at.replace('T', ' ').replace(/(\.000)?Z$/, '')} UTC`;
}

/** Whether the times of a part of the page are relative, as in the rows of a list. */
export const Relative = createContext(false);

/**
 * An instant to the minute, or to the second where exact; the title has all digits, in UTC. In a list it is relative
 * within a week, and a day otherwise, unless it is exact.
 */
export function Time({ at, exact = false }: { at: Instant; exact?: boolean }) {
  const { i18n } = useTranslation();
  const relative = useContext(Relative) && !exact;
  if (at === undefined || at === null || at === '') return <Nothing />;
  const when = new Date(at);
  if (Number.isNaN(when.getTime())) return <bdi dir="ltr">{at}</bdi>;
  if (relative) return <Ago at={at} days={7} />;
  const utc = when.toISOString();
  return (
    <time dateTime={utc} title={inUTC(utc)}>
      <bdi>{dateFormat(i18n.language, exact ? 'medium' : 'short').format(when)}</bdi>
    </time>
  );
}

const spans: ['day' | 'hour' | 'minute', number][] = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
];

/** The largest of day, hour and minute that fits, and its length in milliseconds. */
export const spanOf = (ms: number) => spans.find(([, length]) => Math.abs(ms) >= length);

/** The age of an instant, with the instant itself on hover. After a number of days it is the day itself. */
export function Ago({ at, days = Infinity }: { at: Instant; days?: number }) {
  const { i18n } = useTranslation();
  const now = useNow(10_000);
  if (at === undefined || at === null || at === '') return <Nothing />;
  const when = new Date(at);
  const ms = when.getTime() - now;
  const [unit, length] = spanOf(ms) ?? ['minute', 60_000];
  const count = Math.trunc(ms / length);
  const words =
    unit === 'day' && Math.abs(count) >= days
      ? dateFormat(i18n.language).format(when)
      : relativeFormat(i18n.language).format(count, unit);
  const full = `${dateFormat(i18n.language, 'medium').format(when)} · ${inUTC(when.toISOString())}`;
  return (
    <time dateTime={when.toISOString()} title={full} className="ago">
      <bdi>{words}</bdi>
    </time>
  );
}

/** The id of an account, a challenge or another record of this service. */
export const ulid = /^[0-9A-HJKMNP-TV-Z]{26}$/;

/** The first and the last characters of an id, which identify it to the eye. */
export const shortOf = (text: string) => (text.length > 14 ? `${text.slice(0, 6)}…${text.slice(-6)}` : text);

/**
 * An id, a hash or an address: left to right in every language. The button beside it copies it; a click on the text
 * is a click on its row.
 */
export function Id({ of, short = false }: { of?: string | number | null; short?: boolean }) {
  const { t } = useTranslation();
  if (of === undefined || of === null || of === '') return <Nothing />;
  const text = String(of);
  const shown = short ? shortOf(text) : text;
  return (
    <bdi dir="ltr" className="id" data-code title={shown === text ? undefined : text}>
      <Code className={shown === text ? undefined : 'short'}>{shown}</Code>
      <CopyButton value={text}>
        {({ copied, copy }) => (
          <button
            type="button"
            className="copy"
            aria-label={`${t(copied ? 'copied' : 'copy')}: ${text}`}
            title={t(copied ? 'copied' : 'copy')}
            onClick={(event) => {
              event.stopPropagation();
              copy();
            }}
          >
            {copied ? <IconCheck size={14} aria-hidden /> : <IconCopy size={14} aria-hidden />}
          </button>
        )}
      </CopyButton>
    </bdi>
  );
}

/** A code that is the name of its record, such as a currency or a parameter. */
export function Coded({ of }: { of?: string | number | null }) {
  if (of === undefined || of === null || of === '') return <Nothing />;
  return (
    <bdi dir="ltr" data-code>
      {of}
    </bdi>
  );
}

/** A name with further text below: its code, or its subject. */
export function Titled({ name, below, code }: { name: ReactNode; below?: string | null; code?: string }) {
  return (
    <span className="titled">
      <bdi>{name || code}</bdi>
      {below && (
        <Text component="bdi" size="xs" c="dimmed">
          {below}
        </Text>
      )}
      {name && code && (
        <Text component="bdi" size="xs" c="dimmed" dir="ltr" data-code>
          {code}
        </Text>
      )}
    </span>
  );
}

const colours: Record<string, string> = {
  manuelApproved: 'green',
  ocrOrNfcApproved: 'green',
  waitingApproval: 'yellow',
  closed: 'red',
  risky: 'red',
  active: 'green',
  ACTIVE: 'green',
  done: 'green',
  SUCCESS: 'green',
  success: 'green',
  refused: 'red',
  ALLOW: 'green',
  APPROVED: 'green',
  approved: 'green',
  passive: 'gray',
  INACTIVE: 'gray',
  cancelled: 'gray',
  CANCELLED: 'gray',
  processing: 'blue',
  sent: 'blue',
  highRisk: 'red',
  notRisky: 'green',
  deActive: 'gray',
  released: 'gray',
  EXPIRED: 'gray',
  blocked: 'red',
  failed: 'red',
  FAILED: 'red',
  DENY: 'red',
  DENIED: 'red',
  TRIAL: 'yellow',
  CHALLENGE: 'blue',
  SESSION: 'blue',
  EXECUTING: 'blue',
  REJECTED: 'red',
  rejected: 'red',
  FAILURE: 'red',
  running: 'blue',
  queued: 'blue',
  PENDING: 'yellow',
  waiting: 'yellow',
  paused: 'yellow',
  timeOut: 'yellow',
  hotWalletInsufficientBalance: 'red',
  'tx-9': 'yellow',
  live: 'green',
  scheduled: 'blue',
};

/** A state by its code: its name from the dictionary of states (kit.json), and its tone. */
export function Status({ of, name }: { of?: string | boolean | null; name?: string }) {
  const { t } = useTranslation();
  if (of === undefined || of === null || of === '') return <Nothing />;
  if (typeof of === 'boolean')
    return of ? (
      <span className="yes">
        <IconCheck size={16} aria-hidden />
        <VisuallyHidden>{t('yes')}</VisuallyHidden>
      </span>
    ) : (
      <span className="no">{t('no')}</span>
    );
  return (
    <Badge color={colours[of] ?? 'gray'} variant="light" tt="none" miw="max-content" data-state={of}>
      {name ?? t(`state.${of}`, { defaultValue: of })}
    </Badge>
  );
}

/** A value that does not exist. The cards of a phone leave its line out. */
export function Nothing() {
  return (
    <Text component="span" c="dimmed" aria-hidden className="nothing">
      –
    </Text>
  );
}

/** The text of a value of a form or a record; '' for none, JSON for an object. */
export function textOf(value: unknown): string {
  if (value === undefined || value === null) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** The default display of a value. */
export function plain(value: unknown): ReactNode {
  if (value === undefined || value === null || value === '') return <Nothing />;
  if (typeof value === 'boolean') return <Status of={value} />;
  if (typeof value === 'object') return <Code dir="ltr">{JSON.stringify(value)}</Code>;
  return <bdi>{textOf(value)}</bdi>;
}
