/**
 * A list of the service. Filters and position are in the address, so a list is a link. A page is one request, by the
 * cursor of the previous page, and the service counts nothing. Columns are remembered. Rows are selected one by one,
 * by range (Shift) or all. The shown rows can be saved as CSV.
 */
import { ActionIcon, Button, Checkbox, Group, Paper, Skeleton, Stack, Table, Text, Title } from '@mantine/core';
import type { TFunction } from 'i18next';
import { IconDownload, IconRefresh } from '@tabler/icons-react';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useEffect, useMemo, useState, type ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { useAddress } from '../app/address';
import type { paths } from '../api';
import { readPage, type Gets } from '../app/api';
import { Problem } from '../app/problem';
import { csv, download } from './csv';
import { useOpening } from './drawer';
import { alignedBy, openedWith, type Column } from './fields';
import { Filters, type Filter, type Find } from './filter';
import { useCursorKeys } from './keys';
import { NextStep, type Next } from './next';
import type { Query } from './read';
import { Decimals, plain, Relative } from './show';
import { Look, useDense, Views } from './views';
import { Wide } from './wide';
import type { TextKey } from '../text/key';

/** The record of a list, by its path. */
export type Row<P extends Gets> = paths[P] extends {
  get: { responses: { 200: { content: { 'application/json': (infer T)[] } } } };
}
  ? T extends object
    ? T
    : never
  : never;
/** The filters of a list. tsc fails when a name leaves the interface. */
export type FilterOf<P extends Gets> = Filter & { name: keyof Query<P> & string };

export { alignedBy, type Column } from './fields';
export type { Next } from './next';

export interface ListProps<P extends Gets> {
  path: P;
  title: TextKey;
  columns: Column<Row<P>>[];
  filters?: FilterOf<P>[];
  /** One search field that sets several of the filters. */
  find?: Find;
  /** Identifies a row; the index in the page where no member does. */
  id: (row: Row<P>) => string;
  /** Opens a row. */
  open?: (row: Row<P>) => void;
  /** Beside the heading: for example, a button to add a record. */
  actions?: ReactNode;
  /** Between the filters and the rows: for example, a chart. */
  above?: ReactNode;
  /** The actions for all selected rows. */
  bulk?: (rows: Row<P>[], clear: () => void) => ReactNode;
  /** Sent with every request, and not in the address. */
  fixed?: Partial<Query<P>>;
  /** Required filters: no request is sent before they have values. */
  needs?: (keyof Query<P> & string)[];
  /** The list is below the heading of a screen, so its own heading is smaller. */
  inside?: boolean;
  /** Combines the rows of a page: for example, several records of one case into one row. */
  gather?: (rows: Row<P>[]) => Row<P>[];
  /** The number of rows of a page; undefined for a list without pages. */
  size?: number | undefined;
  /** Key of the text of a list without rows: the next step. */
  empty?: TextKey;
  /** The button of a list without rows. */
  next?: Next;
}

export function List<P extends Gets>(props: ListProps<P>) {
  const { path, columns, filters = [], fixed, size = 100, id } = props;
  const { t } = useTranslation();
  const [search, to] = useAddress();
  const asked: Record<string, unknown> = { ...fixed, ...(size ? { limit: size } : {}) };
  for (const { name } of filters) if (search[name]) asked[name] = search[name];
  if (search.cursor) asked.cursor = search.cursor;
  const missing = (props.needs ?? []).filter((name) => asked[name] === undefined);
  const ready = missing.length === 0;
  const page = useQuery({
    queryKey: [path, asked],
    enabled: ready,
    queryFn: ({ signal }) => readPage<Row<P>>(path, asked, signal),
    placeholderData: keepPreviousData,
  });
  const { gather } = props;
  const data = ready ? page.data?.rows : undefined;
  const rows = useMemo(() => (gather ? gather(data ?? []) : (data ?? [])), [data, gather]);
  const open = useOpening(rows, id, (row) => {
    openedWith(row, columns);
    props.open?.(row);
  });
  const names = rows.map((row, n) => id(row) || String(n));
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const chosen = rows.filter((_, n) => selected.has(names[n]!));
  const select = (some: string[], to: boolean) =>
    setSelected((had) => (to ? new Set([...had, ...some]) : new Set([...had].filter((one) => !some.includes(one)))));
  const { body, ...cursor } = useCursorKeys(
    names,
    (n) => {
      const row = rows[n];
      if (row) open(row);
    },
    (some, clicked) => select(some, !selected.has(clicked)),
  );

  const [dense] = useDense();
  // Lists of one path have different columns and filters: the documents of a customer are not the queue of documents.
  const name = [path, props.title, ...(props.inside ? ['inside'] : [])].join(' ');
  const [visible, show] = useVisible(name);
  const seen = columns.filter((c) => visible[c.key] ?? !c.hidden);
  const head = seen.find((c) => c.card === 'head') ?? seen.find((c) => !c.card) ?? seen[0];
  const empty = ready && page.data && rows.length === 0;
  const none = Object.fromEntries([...filters.map((f) => f.name), 'cursor'].map((name) => [name, undefined]));
  const filtered = filters.some(({ name }) => search[name]);
  const ends = alignedBy(columns, rows);
  // An empty list without filters has nothing to save and no columns.
  const tools = (
    <>
      {filters.length > 0 && <Views list={name} search={search} go={(view) => to({ ...none, ...view })} />}
      {!(empty && filters.length === 0) && (
        <>
          <Button
            variant="default"
            size="xs"
            className="quiet"
            leftSection={<IconDownload size={14} />}
            disabled={!page.data?.rows.length}
            data-testid="csv"
            onClick={() => download(`${path.split('/').pop()}.csv`, toCSV(rows, seen, t))}
          >
            CSV
          </Button>
          <Look
            columns={columns.map((c) => ({
              id: c.key,
              label: t(c.title),
              shown: seen.includes(c),
              toggle: () => show(c.key, !seen.includes(c)),
            }))}
          />
        </>
      )}
      <ActionIcon
        variant="default"
        size={30}
        aria-label={t('list.again')}
        loading={page.isFetching}
        disabled={!ready}
        onClick={() => void page.refetch()}
      >
        <IconRefresh size={16} />
      </ActionIcon>
    </>
  );

  return (
    <Stack gap="sm" data-testid="list" data-path={path}>
      <Group justify="space-between">
        <Title order={props.inside ? 2 : 1} size={props.inside ? 'h4' : 'h3'}>
          {t(props.title)}
        </Title>
        <Group gap="xs" className={filters.length > 0 ? undefined : 'tools'}>
          {filters.length === 0 && tools}
          {props.actions}
        </Group>
      </Group>
      {filters.length > 0 && (
        <Filters
          label={t(props.title)}
          filters={filters}
          find={props.find}
          needs={props.needs ?? []}
          values={search}
          onChange={(values) => to({ ...values, cursor: undefined })}
        >
          {tools}
        </Filters>
      )}
      {props.above}
      <Problem of={page.error} />
      {!ready && (
        <Paper withBorder className="empty">
          <Text c="dimmed">
            {t('list.needs', {
              fields: filters
                .filter((f) => missing.includes(f.name))
                .map((f) => t(f.title))
                .join(', '),
            })}
          </Text>
          {props.next && <NextStep of={props.next} />}
        </Paper>
      )}
      {ready && !empty && (
        <Paper withBorder className="rows" data-dense={dense || undefined} data-inside={props.inside || undefined}>
          <Wide label={t(props.title)} minWidth={0} maxHeight={props.inside ? undefined : 'var(--castellan-rows)'}>
            <Table highlightOnHover stickyHeader aria-busy={page.isFetching}>
              <Table.Thead>
                <Table.Tr>
                  {props.bulk && (
                    <Table.Th w={36}>
                      <Checkbox
                        size="sm"
                        aria-label={t('list.all')}
                        checked={rows.length > 0 && chosen.length === rows.length}
                        indeterminate={chosen.length > 0 && chosen.length < rows.length}
                        onChange={(event) => select(names, event.currentTarget.checked)}
                      />
                    </Table.Th>
                  )}
                  {seen.map((c) => (
                    <Table.Th key={c.key} data-end={ends.has(c.key) || undefined}>
                      {t(c.title)}
                    </Table.Th>
                  ))}
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody ref={body}>
                <Relative value>
                  {page.isLoading && <Waiting columns={columns.length} />}
                  {rows.map((row, n) => (
                    <Table.Tr
                      key={names[n]}
                      data-testid="row"
                      data-at={n === cursor.at || undefined}
                      {...cursor.row(n)}
                      aria-selected={selected.has(names[n]!)}
                      className={props.open ? 'opens' : undefined}
                      onClick={() => open(row)}
                    >
                      {props.bulk && (
                        <Table.Td className="chooses" onClick={(event) => cursor.choose(event, n)}>
                          {/* Mantine's checkbox has eight elements: a hundred took an eighth of the page's time. */}
                          <input
                            type="checkbox"
                            className="choose"
                            aria-label={t('list.choose')}
                            checked={selected.has(names[n]!)}
                            readOnly
                          />
                        </Table.Td>
                      )}
                      {seen.map((c) => (
                        <Table.Td
                          key={c.key}
                          data-end={ends.has(c.key) || undefined}
                          data-label={t(c.title)}
                          data-card={c === head ? 'head' : c.card === 'head' ? undefined : c.card}
                        >
                          <Decimals value={ends.get(c.key) ?? 0}>{c.show ? c.show(row) : plain(row[c.key])}</Decimals>
                        </Table.Td>
                      ))}
                    </Table.Tr>
                  ))}
                </Relative>
              </Table.Tbody>
            </Table>
          </Wide>
          {chosen.length > 0 && props.bulk && (
            <Group className="bulk" data-testid="bulk">
              <Text size="sm" fw={500}>
                {t('list.chosen', { count: chosen.length })}
              </Text>
              <Group gap="xs" className="acts">
                {props.bulk(chosen, () => setSelected(new Set()))}
              </Group>
              <Text size="sm" c="dimmed" className="none">
                {t('list.noAction')}
              </Text>
              <Button size="xs" variant="subtle" ms="auto" onClick={() => setSelected(new Set())}>
                {t('list.unchoose')}
              </Button>
            </Group>
          )}
        </Paper>
      )}
      {empty && (
        <Paper withBorder className="empty" data-testid="empty">
          <Text c="dimmed">{t(filtered ? 'list.empty' : (props.empty ?? 'list.none'))}</Text>
          {filtered ? (
            <Button size="xs" variant="default" onClick={() => to(none)}>
              {t('list.clear')}
            </Button>
          ) : (
            props.next && <NextStep of={props.next} />
          )}
        </Paper>
      )}
      {!!size && (search.cursor || page.data?.next) && (
        <Group justify="flex-end" gap="xs">
          <Button size="xs" variant="default" disabled={!search.cursor} onClick={() => to({ cursor: undefined })}>
            {t('list.first')}
          </Button>
          <Button size="xs" variant="default" disabled={!search.cursor} onClick={() => history.back()}>
            {t('list.previous')}
          </Button>
          <Button
            size="xs"
            variant="default"
            disabled={!page.data?.next}
            data-testid="next"
            onClick={() => to({ cursor: page.data?.next })}
          >
            {t('list.next')}
          </Button>
        </Group>
      )}
    </Stack>
  );
}

/** Which columns the user showed and hid, remembered for each list. */
function useVisible(list: string) {
  const remembered = `castellan.columns.${list}`;
  const [visible, setVisible] = useState(() => recall(remembered));
  useEffect(() => {
    if (Object.keys(visible).length > 0) localStorage.setItem(remembered, JSON.stringify(visible));
  }, [remembered, visible]);
  return [visible, (key: string, to: boolean) => setVisible((had) => ({ ...had, [key]: to }))] as const;
}

/** The remembered columns. Foreign values in the storage are ignored. */
function recall(name: string): Record<string, boolean> {
  try {
    return JSON.parse(localStorage.getItem(name) ?? '{}') as Record<string, boolean>;
  } catch {
    return {};
  }
}

function toCSV<T>(rows: T[], columns: Column<T>[], t: TFunction): string {
  return csv(
    columns.map((c) => t(c.title)),
    rows.map((row) => columns.map((c) => (c.text ? c.text(row) : row[c.key]))),
  );
}

function Waiting({ columns }: { columns: number }) {
  return [0, 1, 2, 3, 4].map((n) => (
    <Table.Tr key={n}>
      <Table.Td colSpan={columns + 1}>
        <Skeleton height={14} my={4} />
      </Table.Td>
    </Table.Tr>
  ));
}
