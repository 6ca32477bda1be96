/**
 * Fees, minimums, treasury addresses and explorers: four parameters, each shown as a table. An entry is a row. A
 * change replaces the whole parameter as it was read; of two concurrent changes the second is refused.
 */
import { Alert, Stack, Text, Title } from '@mantine/core';
import { useState, type ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import type { Schemas } from '../app/api';
import { useMay } from '../app/session';
import { List, type Column, type Row } from '../kit/list';
import { useRead } from '../kit/read';
import { Diff } from '../kit/record';
import { Id, Money, textOf } from '../kit/show';
import { Write, type Input } from '../kit/write';
import { decimalsOf, usePairs } from './parts';
import { Sheets } from '../kit/sheets';
import type { TextKey } from '../text/key';

const path = '/admin/get-parameters';
const update = '/admin/update-parameters';
type Parameter = Row<typeof path>;
type Pair = Schemas['CurrencyNetworkListed'];

interface Entry {
  currency?: string;
  network?: string;
  value: string;
}

interface Table {
  name: 'fees' | 'minimums' | 'treasury' | 'explorers';
  code: string;
  keys: ('currency' | 'network')[];
  value: TextKey;
  help: TextKey;
  money?: boolean;
}

const tables: Table[] = [
  { name: 'fees', code: 'WITHDRAWAL_FEE', keys: ['currency'], value: 'fees.fee', help: 'fees.feeHelp', money: true },
  {
    name: 'minimums',
    code: 'WITHDRAWAL_MINIMUM',
    keys: ['currency'],
    value: 'fees.minimum',
    help: 'fees.minimumHelp',
    money: true,
  },
  {
    name: 'treasury',
    code: 'TREASURY',
    keys: ['currency', 'network'],
    value: 'fees.address',
    help: 'fees.addressHelp',
  },
  { name: 'explorers', code: 'EXPLORER', keys: ['network'], value: 'fees.link', help: 'fees.linkHelp' },
];

export default function Fees() {
  const { t } = useTranslation();
  return (
    <Stack>
      <Title order={1} size="h3">
        {t('fees.title')}
      </Title>
      <Sheets
        label="fees.title"
        sheets={tables.map((table) => ({
          name: table.name,
          title: `fees.${table.name}`,
          needs: `GET ${path}`,
          show: () => <Entries key={table.name} of={table} />,
        }))}
      />
    </Stack>
  );
}

function entriesOf(table: Table, json: object, under: Omit<Entry, 'value'> = {}, depth = 0): Entry[] {
  const key = table.keys[depth];
  return Object.entries(json).flatMap(([name, value]): Entry[] => {
    const place = { ...under, [key!]: name };
    return depth + 1 < table.keys.length
      ? entriesOf(table, value as object, place, depth + 1)
      : [{ ...place, value: String(value) }];
  });
}

/** The object with one entry set, or removed if the value is empty. */
function withEntry(table: Table, json: Record<string, unknown>, entry: Partial<Entry>, depth = 0): object {
  const { [entry[table.keys[depth]!] ?? '']: old, ...rest } = json;
  const name = entry[table.keys[depth]!] ?? '';
  if (depth + 1 < table.keys.length) {
    const inner = withEntry(table, (old ?? {}) as Record<string, unknown>, entry, depth + 1);
    return Object.keys(inner).length > 0 ? { ...rest, [name]: inner } : rest;
  }
  return entry.value && name ? { ...rest, [name]: entry.value } : rest;
}

/** An amount is sent as the typed number, to the last digit. */
const exact = (JSON as unknown as { rawJSON?: (text: string) => unknown }).rawJSON;

function sent(table: Table, json: object): Record<string, unknown> {
  if (!table.money || !exact) return json as Record<string, unknown>;
  return Object.fromEntries(Object.entries(json).map(([name, value]) => [name, exact(String(value))]));
}

const spot = (table: Table, entry: Partial<Entry>) => table.keys.map((key) => entry[key] ?? '').join(' / ');

const flat = (table: Table, json: object) =>
  Object.fromEntries(entriesOf(table, json).map((entry) => [spot(table, entry), entry.value]));

function Entries({ of: table }: { of: Table }) {
  const { t } = useTranslation();
  const may = useMay();
  const pairs = usePairs();
  const [edited, setEdited] = useState<Entry>();
  const parameter = useRead(path, { code: table.code }).data?.[0];
  const columns = [
    ...table.keys.map((key) => ({
      key,
      title: `fees.${key}` as const,
      show: (e: Entry) => <bdi dir="ltr">{e[key]}</bdi>,
    })),
    { key: 'value', title: table.value, end: table.money, show: (e: Entry) => value(table, e) },
  ] as unknown as Column<Parameter>[];
  const changeable = !!parameter?.isEditable && may(`POST ${update}`);
  return (
    <>
      <List
        path={path}
        title={`fees.${table.name}`}
        inside
        columns={columns}
        size={undefined}
        fixed={{ code: table.code }}
        // The rows of the list are entries, not parameters.
        gather={(rows) => rows.flatMap((p) => entriesOf(table, p.json)) as never}
        id={(e) => spot(table, e as unknown as Entry)}
        open={changeable ? (e) => setEdited(e as unknown as Entry) : undefined}
        empty={`fees.${table.name}None`}
        next={changeable ? { title: 'fees.add', form: `fees.add:${table.name}`, needs: `POST ${update}` } : undefined}
        above={<Help of={`fees.${table.name}Lead`} />}
        actions={parameter && changeable && <Change of={parameter} table={table} pairs={pairs} />}
      />
      {edited && parameter && (
        <Change
          key={spot(table, edited)}
          of={parameter}
          table={table}
          pairs={pairs}
          entry={edited}
          onClose={() => setEdited(undefined)}
        />
      )}
    </>
  );

  function value(table: Table, e: Entry): ReactNode {
    return table.money ? <Money amount={e.value} unit={e.currency} /> : <Id of={e.value} />;
  }

  function Help({ of }: { of: TextKey }) {
    return (
      <Text size="sm" c="dimmed">
        {t(of)}
      </Text>
    );
  }
}

/** Adds an entry, or changes the given one. An empty value removes it. */
function Change({
  of,
  table,
  pairs,
  entry,
  onClose,
}: {
  of: Parameter;
  table: Table;
  pairs: Pair[];
  entry?: Entry;
  onClose?: () => void;
}) {
  const { t } = useTranslation();
  const fields: Input<Entry>[] = [
    ...(entry
      ? []
      : table.keys.map((key) => ({ name: key, title: `fees.${key}` as const, kind: codes(key), required: true }))),
    {
      name: 'value',
      title: table.value,
      help: entry ? 'fees.emptyHelp' : table.help,
      required: !entry,
      kind: table.money ? 'money' : 'text',
      bounds: (values) => {
        const unit = textOf(values.currency ?? entry?.currency);
        return { unit, decimals: decimalsOf(pairs, unit) };
      },
    },
  ];
  function codes(key: 'currency' | 'network') {
    const known = [...new Set(pairs.map((p) => (key === 'currency' ? p.currencyCode : p.networkCode)))].sort();
    return known.length > 0 ? known : ('text' as const);
  }
  const after = (values: Partial<Entry>) => withEntry(table, of.json, { ...entry, value: '', ...values });
  return (
    <Write
      method="post"
      path={update}
      title={entry ? 'fees.change' : 'fees.add'}
      record={entry ? `${table.name} ${spot(table, entry)}` : table.name}
      touches={[path]}
      fields={fields}
      initial={entry && { value: entry.value }}
      {...(entry ? { opened: true, onClose } : {})}
      before={(values) => (
        <Stack gap="xs">
          {entry && (
            <Text fw={600}>
              <bdi dir="ltr">{spot(table, entry)}</bdi>
            </Text>
          )}
          <Diff before={flat(table, of.json)} after={flat(table, after(values))} />
          {table.name === 'treasury' && <Alert color="yellow">{t('fees.treasuryNote')}</Alert>}
        </Stack>
      )}
      make={(values: Entry) => ({ id: of.id, ifUpdatedAt: of.updatedAt, json: sent(table, after(values)) })}
    />
  );
}
