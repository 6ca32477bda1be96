/** One write for each selected row: a preview first, then the result of each. Failed rows can be repeated. */
import { Button, Modal, Progress, Stack, Table, type ButtonProps } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import type { paths } from '../api';
import { useAct } from '../app/act';
import type { Body, Writes } from '../app/api';
import { Problem } from '../app/problem';
import { useMay } from '../app/session';
import { Status } from './show';
import type { TextKey } from '../text/key';

export interface BulkProps<T, M extends 'post' | 'patch' | 'delete', P extends Writes<M> & keyof paths> {
  method: M;
  path: P;
  title: TextKey;
  rows: T[];
  /** The label of a row in the preview. */
  name: (row: T) => ReactNode;
  body: (row: T) => Body<P, M>;
  places?: (row: T) => Record<string, string>;
  touches?: string[];
  onDone?: () => void;
  /** Shown above the rows: for example, a field for the reason. */
  children?: ReactNode;
  /** Whether the fields above the rows are complete. */
  ready?: boolean;
  button?: ButtonProps;
  /** Key of the text of the send button, with the number of rows as count. For a single row it is the title. */
  go?: TextKey;
}

export function Bulk<T, M extends 'post' | 'patch' | 'delete', P extends Writes<M> & keyof paths>(
  props: BulkProps<T, M, P>,
) {
  const { t } = useTranslation();
  const may = useMay();
  const queries = useQueryClient();
  const act = useAct(props.method, props.path);
  const [open, setOpen] = useState(false);
  const [done, setDone] = useState<ReadonlySet<T>>(new Set());
  if (!may(`${props.method.toUpperCase()} ${String(props.path)}`)) return null;
  async function all() {
    for (const row of props.rows) {
      if (done.has(row)) continue;
      if ((await act.run(props.body(row), props.places?.(row))) === undefined) return;
      setDone((old) => new Set(old).add(row));
    }
    await Promise.all((props.touches ?? []).map((path) => queries.invalidateQueries({ queryKey: [path] })));
    setOpen(false);
    props.onDone?.();
  }
  return (
    <>
      <Button
        size="xs"
        variant="default"
        {...props.button}
        onClick={() => {
          setDone(new Set());
          act.clear();
          setOpen(true);
        }}
        data-testid={`bulk-${String(props.path)}`}
      >
        {t(props.title, { count: props.rows.length })}
      </Button>
      <Modal
        opened={open}
        onClose={() => setOpen(false)}
        title={t(props.title, { count: props.rows.length })}
        size="lg"
      >
        <Stack>
          {props.children}
          <Table>
            <Table.Tbody>
              {props.rows.map((row, n) => (
                <Table.Tr key={n}>
                  <Table.Td>{props.name(row)}</Table.Td>
                  <Table.Td w={80}>{done.has(row) && <Status of="done" />}</Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
          {act.busy && <Progress value={(done.size / props.rows.length) * 100} aria-label={t('bulk.progress')} />}
          <Problem of={act.problem} />
          <Button
            loading={act.busy}
            disabled={props.ready === false}
            onClick={() => void all()}
            data-testid="bulk-send"
          >
            {t(props.go && props.rows.length === 1 ? props.title : (props.go ?? 'bulk.send'), {
              count: props.rows.length - done.size,
            })}
          </Button>
        </Stack>
      </Modal>
      {act.view}
    </>
  );
}
