/**
 * A list of the service. Filters and position are in the address, so a list is a link. A page is one request, by the
 * cursor of the previous page, and the service counts nothing. Columns are remembered. Rows are selected one by one,
 * by range (Shift) or all. The shown rows can be saved as CSV.
 */
import { ActionIcon, Button, Checkbox, Group, Paper, Skeleton, Stack, Table, Text, Title } from '@mantine/core';
import type { TFunction } from 'i18next';
import { IconDownload, IconRefresh } from '@tabler/icons-react';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import {
  columnVisibilityFeature,
  rowSelectionFeature,
  tableFeatures,
  useTable,
  type ColumnDef,
} from '@tanstack/react-table';
import { useEffect, useMemo, useState, type ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { useAddress } from '../app/address';
import type { paths } from '../api';
import { readPage, type Gets, type Page } from '../app/api';
import { Problem } from '../app/problem';
import { csv, download } from './csv';
import { useOpening } from './drawer';
import { alignedBy, openedWith, type Column } from './fields';
import { Filters, type Filter, type Find } from './filter';
import { useCursorKeys } from './keys';
import { NextStep, type Next } from './next';
import type { Query } from './read';
import { Decimals, plain } from './show';
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

const features = tableFeatures({ columnVisibilityFeature, rowSelectionFeature });
type Features = typeof features;

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
  const table = useRows(props, ready ? page.data : undefined);
  const open = useOpening(
    table.getRowModel().rows.map((row) => row.original),
    id,
    (row) => {
      openedWith(row, columns);
      props.open?.(row);
    },
  );
  const chosen = table.getSelectedRowModel().rows.map((row) => row.original);
  const { body, ...cursor } = useCursorKeys(
    table.getRowModel().rows.length,
    (n) => {
      const row = table.getRowModel().rows[n];
      if (row) open(row.original);
    },
    (n) => table.getRowModel().rows[n]?.toggleSelected(),
  );

  const [dense] = useDense();
  const shown = table.getRowModel().rows;
  const empty = ready && page.data && shown.length === 0;
  const none = Object.fromEntries([...filters.map((f) => f.name), 'cursor'].map((name) => [name, undefined]));
  const filtered = filters.some(({ name }) => search[name]);
  const labelOf = (key: string) => t(titleOf(columns, key));
  const ends = alignedBy(
    columns,
    shown.map((row) => row.original),
  );

  return (
    <Stack gap="sm" data-testid="list" data-path={path}>
      <Group justify="space-between">
        <Title order={props.inside ? 2 : 1} size={props.inside ? 'h4' : 'h3'}>
          {t(props.title)}
        </Title>
        <Group gap="xs">{props.actions}</Group>
      </Group>
      <Filters
        label={t(props.title)}
        filters={filters}
        find={props.find}
        needs={props.needs ?? []}
        values={search}
        onChange={(values) => to({ ...values, cursor: undefined })}
      >
        {filters.length > 0 && <Views path={path} search={search} go={(view) => to({ ...none, ...view })} />}
        <Button
          variant="default"
          size="xs"
          leftSection={<IconDownload size={14} />}
          disabled={!page.data?.rows.length}
          onClick={() => download(`${path.split('/').pop()}.csv`, toCSV(table, columns, t))}
        >
          CSV
        </Button>
        <Look
          columns={table.getAllLeafColumns().map((c) => ({
            id: c.id,
            label: labelOf(c.id),
            shown: c.getIsVisible(),
            toggle: () => c.toggleVisibility(),
          }))}
        />
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
      </Filters>
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
                        size="xs"
                        aria-label={t('list.all')}
                        checked={table.getIsAllRowsSelected()}
                        indeterminate={table.getIsSomeRowsSelected() && !table.getIsAllRowsSelected()}
                        onChange={table.getToggleAllRowsSelectedHandler()}
                      />
                    </Table.Th>
                  )}
                  {table.getVisibleLeafColumns().map((c) => (
                    <Table.Th key={c.id} data-end={ends.has(c.id) || undefined}>
                      {labelOf(c.id)}
                    </Table.Th>
                  ))}
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody ref={body}>
                {page.isLoading && <Waiting columns={columns.length} />}
                {shown.map((row, n) => (
                  <Table.Tr
                    key={row.id}
                    data-testid="row"
                    data-at={n === cursor.at || undefined}
                    {...cursor.row(n)}
                    aria-selected={row.getIsSelected()}
                    className={props.open ? 'opens' : undefined}
                    onClick={() => open(row.original)}
                  >
                    {props.bulk && (
                      <Table.Td className="chooses" onClick={(event) => cursor.choose(event, n, table)}>
                        {/* Mantine's checkbox has eight elements: a hundred took an eighth of the page's time. */}
                        <input
                          type="checkbox"
                          className="choose"
                          aria-label={t('list.choose')}
                          checked={row.getIsSelected()}
                          readOnly
                        />
                      </Table.Td>
                    )}
                    {row.getVisibleCells().map((cell) => (
                      <Table.Td
                        key={cell.id}
                        data-end={ends.has(cell.column.id) || undefined}
                        data-label={labelOf(cell.column.id)}
                      >
                        <Decimals value={ends.get(cell.column.id) ?? 0}>
                          <table.FlexRender cell={cell} />
                        </Decimals>
                      </Table.Td>
                    ))}
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </Wide>
          {chosen.length > 0 && props.bulk && (
            <Group className="bulk" data-testid="bulk">
              <Text size="sm" fw={500}>
                {t('list.chosen', { count: chosen.length })}
              </Text>
              <Group gap="xs" className="acts">
                {props.bulk(chosen, () => table.resetRowSelection())}
              </Group>
              <Text size="sm" c="dimmed" className="none">
                {t('list.noAction')}
              </Text>
              <Button size="xs" variant="subtle" ms="auto" onClick={() => table.resetRowSelection()}>
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

  function useRows(p: ListProps<P>, data: Page<Row<P>> | undefined) {
    const { gather } = p;
    const rows = useMemo(() => (gather ? gather(data?.rows ?? []) : (data?.rows ?? [])), [data, gather]);
    const remembered = `castellan.columns.${p.path}`;
    const [visible, setVisible] = useState<Record<string, boolean>>(() => ({
      ...Object.fromEntries(columns.filter((c) => c.hidden).map((c) => [c.key, false])),
      ...recall(remembered),
    }));
    useEffect(() => localStorage.setItem(remembered, JSON.stringify(visible)), [remembered, visible]);
    const [selected, setSelected] = useState<Record<string, true>>({});
    const defs = useMemo(
      () =>
        columns.map((c): ColumnDef<Features, Row<P> & object> => ({
          id: c.key,
          accessorFn: (row: Row<P>) => row[c.key],
          cell: ({ row }) => (c.show ? c.show(row.original) : plain((row.original as Row<P>)[c.key])),
        })),
      [],
    );
    return useTable<Features, Row<P> & object>({
      features,
      columns: defs,
      data: rows,
      getRowId: (row: Row<P>, n: number) => id(row) || String(n),
      state: { columnVisibility: visible, rowSelection: selected },
      onColumnVisibilityChange: setVisible,
      onRowSelectionChange: setSelected,
    });
  }
}

/** The columns that were shown. Foreign values in the storage are ignored. */
function recall(name: string): Record<string, boolean> {
  try {
    return JSON.parse(localStorage.getItem(name) ?? '{}') as Record<string, boolean>;
  } catch {
    return {};
  }
}

type Rows = ReturnType<typeof useTable<Features, never>>;

function titleOf<T>(columns: Column<T>[], key: string): TextKey {
  return columns.find((c) => c.key === key)!.title;
}

function toCSV<T>(table: unknown, columns: Column<T>[], t: TFunction): string {
  const rows = table as Rows;
  const shown = rows.getVisibleLeafColumns().map((c) => c.id);
  return csv(
    shown.map((key) => t(titleOf(columns, key))),
    rows.getRowModel().rows.map(({ original }) =>
      shown.map((key) => {
        const text = columns.find((c) => c.key === key)?.text;
        return text ? text(original) : (original as Record<string, unknown>)[key];
      }),
    ),
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
