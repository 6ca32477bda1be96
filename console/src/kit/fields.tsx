/**
 * A record in words: the columns of its list with the same names and cells, then the other members that have a name.
 * The wire names are in the raw record (record.tsx).
 */
import { Table } from '@mantine/core';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { Person } from './person';
import { Coded, decimalsIn, Id, Money, plain, Status, Time, ulid } from './show';
import { Word } from './word';
import type { TextKey } from '../text/key';

/** A member of a record: a column of a list, and a line of its drawer. */
export interface Column<T> {
  key: keyof T & string;
  /** Key of the heading, for example "users.fullName". */
  title: TextKey;
  show?: (row: T) => ReactNode;
  /** The text of the cell in the CSV, if it is not the member of this key. */
  text?: (row: T) => unknown;
  /** Hidden until the user shows it. */
  hidden?: boolean;
  /** Numbers below each other: at the end of the cell. */
  end?: boolean;
  /** The cell is the person of the row, so a drawer does not repeat the name, the contact data and the account. */
  person?: boolean;
  /**
   * The place in the card of a phone: the heading and its end, the start and the end of the line below, or none. If no
   * column is the heading, the first column without a place is. Others without a place are lines with their labels.
   */
  card?: 'head' | 'top' | 'start' | 'end' | 'none';
}

/** The columns of numbers, each with the most decimals of its rows. */
export function alignedBy<T>(columns: readonly Column<T>[], rows: T[]): Map<string, number> {
  return new Map(
    columns
      .filter((c) => c.end)
      .map((c) => [c.key, Math.max(0, ...rows.map((row) => decimalsIn(c.text ? c.text(row) : row[c.key])))]),
  );
}

const opened = new WeakMap<object, () => Line[]>();

/** Remembers the columns of the list that opened a row. */
export function openedWith<T extends object>(row: T, columns: readonly Column<T>[]): void {
  opened.set(row, () => linesOf(row, columns));
}

const person = 'person';
const money = 'money';
const code = 'code';
type Kind = typeof person | typeof money | typeof code;

/** The members that lists do not show as a column: the key of the name, and the form of the value. */
const known: Record<string, [title: TextKey, kind?: Kind]> = {
  action: ['field.action'],
  actorId: ['field.actor', person],
  address: ['money.address', code],
  amount: ['money.amount', money],
  at: ['money.at'],
  available: ['money.available', money],
  balance: ['money.balance', money],
  code: ['currency.code', code],
  comment: ['request.comment'],
  countryName: ['field.country'],
  createdAt: ['field.created'],
  createdBy: ['field.createdBy', person],
  currencyCode: ['money.currency', code],
  decidedAt: ['field.decided'],
  decidedBy: ['approvals.decidedBy', person],
  description: ['field.description'],
  detail: ['field.detail'],
  deviceBrand: ['field.deviceBrand'],
  deviceModel: ['field.deviceModel'],
  email: ['field.email', code],
  error: ['field.error'],
  expireAt: ['firewall.expireAt'],
  expiresAt: ['firewall.expireAt'],
  fee: ['money.fee', money],
  fullName: ['currency.name'],
  host: ['gateway.host', code],
  id: ['field.id', code],
  ip: ['field.ip', code],
  ipaddress: ['field.ip', code],
  isActive: ['announcement.active'],
  isEditable: ['field.editable'],
  locked: ['money.locked', money],
  lockedUntil: ['field.lockedUntil'],
  message: ['announcement.message'],
  name: ['currency.name'],
  network: ['money.network', code],
  networkCode: ['money.network', code],
  outcome: ['field.outcome'],
  phoneNumber: ['field.phone', code],
  reason: ['money.reason'],
  requestId: ['field.request', code],
  requestedAt: ['approvals.at'],
  requestedBy: ['approvals.by', person],
  role: ['field.role', code],
  rotatedAt: ['field.rotated'],
  startDate: ['announcement.start'],
  endDate: ['announcement.end'],
  status: ['money.status'],
  success: ['field.success'],
  surname: ['field.surname'],
  target: ['field.target', code],
  threshold: ['currency.threshold', money],
  title: ['announcement.subject'],
  transactionId: ['money.transaction', code],
  txId: ['money.txId', code],
  updatedAt: ['field.updated'],
  updatedBy: ['field.updatedBy', person],
  userId: ['money.user', person],
  value: ['money.amount', money],
};

/** Key of the name of a member, if it has one. */
export const titleOf = (name: string): TextKey | undefined => known[name]?.[0];

const instant = /^\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)$/;
/** The members whose values are states, with names in the dictionary of states. */
const states = /status$|outcome$|confirm$|^type$|^verdict$|^transactionDescription$/i;

/** A value in words, by the name of its member. An expiry of 0 is never; a state has its name. */
export function Value({ name, of }: { name: string; of: unknown }) {
  const { t, i18n } = useTranslation();
  const kind = known[name]?.[1];
  if (/^expires?At$/.test(name) && (of === 0 || of === null)) return <Word of="firewall.never" />;
  if (typeof of === 'number' && /At$|Until$/.test(name)) return <Time at={of} exact />;
  if (Array.isArray(of) && of.every((one) => typeof one !== 'object')) return <bdi dir="ltr">{of.join(', ')}</bdi>;
  if (typeof of !== 'string' && typeof of !== 'number') return plain(of);
  const text = String(of);
  if (kind === person) return <Person id={text} />;
  if (kind === money) return <Money amount={text} />;
  if (instant.test(text)) return <Time at={text} exact />;
  if (ulid.test(text)) return <Id of={text} short />;
  if (kind === code) return <Coded of={text} />;
  if (states.test(name) && i18n.exists(`state.${text}`)) return <Status of={text} />;
  if (name === 'action') return <bdi title={text}>{t(`act.${text}`, { defaultValue: text })}</bdi>;
  return plain(of);
}

const isEmpty = (value: unknown) =>
  value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0);

interface Line {
  key: string;
  title: TextKey;
  cell: ReactNode;
}

/** Members that the cell of a person shows. */
const contact = ['userId', 'fullName', 'surname', 'email', 'phoneNumber'];

/** The lines of a record. A member without a value has none, nor has the number of a record. */
function linesOf<T extends object>(of: T, columns: readonly Column<T>[]): Line[] {
  const record = of as Record<string, unknown>;
  const value = (c: Column<T>) => (c.text ? c.text(of) : record[c.key]);
  const person = columns.find((c) => c.person);
  const shown = columns
    .filter((c) => !(c.key in record || c.text) || !isEmpty(value(c)))
    .filter((c) => !person || c === person || c.key !== 'userId')
    .map((c) => ({
      key: c.key,
      title: c.title,
      cell: c.show ? c.show(of) : <Value name={c.key} of={record[c.key]} />,
    }));
  const listed = new Set<string>(columns.map((c) => c.key));
  if (person) contact.forEach((c) => listed.add(c));
  if (typeof record.id === 'number') listed.add('id');
  const titles = new Set(columns.map((c) => c.title));
  const others = Object.entries(record)
    .filter(([key, value]) => !listed.has(key) && known[key] && !titles.has(known[key][0]) && !isEmpty(value))
    .filter(([, value]) => typeof value !== 'object' || Array.isArray(value))
    .map(([key, value]) => ({ key, title: known[key]![0], cell: <Value name={key} of={value} /> }));
  return [...shown, ...others];
}

/** The members of a record in words. Without columns they are those of the list that opened it. */
export function Fields<T extends object>({ of, columns }: { of: T; columns?: readonly Column<T>[] }) {
  const { t } = useTranslation();
  const lines = columns ? linesOf(of, columns) : (opened.get(of)?.() ?? linesOf(of, []));
  return (
    <Table withRowBorders={false} className="fields" data-testid="fields">
      <Table.Tbody>
        {lines.map(({ key, title, cell }) => (
          <Table.Tr key={key} data-field={key}>
            <Table.Th scope="row" w="35%">
              {t(title)}
            </Table.Th>
            <Table.Td>{cell}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}
