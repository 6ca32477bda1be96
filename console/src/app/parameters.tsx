/** The parameters, which the service reads without a restart. The difference is shown before a change is sent. */
import { List as Lines, Stack, Text } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useMay } from './session';
import { List, type Column, type FilterOf, type Row } from '../kit/list';
import { Diff, Whole } from '../kit/record';
import { Coded, Nothing, Status, textOf, Time, Titled } from '../kit/show';
import { Write, type Input } from '../kit/write';
import { asList, shapes, sheets } from './shape';
import { parameterName } from '../kit/word';

const path = '/admin/get-parameters';
const update = '/admin/update-parameters';
type Parameter = Row<typeof path>;
type Values = Record<string, unknown>;

const columns: Column<Parameter>[] = [
  {
    key: 'name',
    title: 'parameter.name',
    show: (p) => <Titled name={<ParameterName of={p} />} code={p.code} />,
    text: (p) => `${p.name} (${p.code})`,
  },
  { key: 'code', title: 'parameter.code', show: (p) => <Coded of={p.code} />, hidden: true },
  { key: 'json', title: 'parameter.values', show: (p) => <Preview of={p.json} />, text: (p) => JSON.stringify(p.json) },
  { key: 'isEditable', title: 'parameter.editable', show: (p) => <Status of={p.isEditable} /> },
  { key: 'updatedAt', title: 'parameter.updated', show: (p) => <Time at={p.updatedAt} /> },
  { key: 'createdAt', title: 'parameter.created', show: (p) => <Time at={p.createdAt} />, hidden: true },
];

function ParameterName({ of }: { of: Parameter }) {
  const { t } = useTranslation();
  return parameterName(of, t);
}

/** The beginning of the values: the items of a list, or the members of another object. */
function Preview({ of }: { of: Values }) {
  const list = asList(of);
  const values = list
    ? (of as Record<string, string[]>)[list]!
    : Object.entries(of).map(([name, value]) => (typeof value === 'object' ? name : `${name}: ${textOf(value)}`));
  if (values.length === 0) return <Nothing />;
  return (
    <Text size="xs" c="dimmed" lineClamp={1} maw={420} title={values.join(', ')} data-cut="meant" data-code>
      <bdi dir="ltr">{values.join(', ')}</bdi>
    </Text>
  );
}

const filters: FilterOf<typeof path>[] = [
  { name: 'code', title: 'parameter.code' },
  { name: 'isEditable', title: 'parameter.editable', kind: 'flag' },
];

export default function Parameters() {
  const may = useMay();
  const [open, setOpen] = useState<Parameter>();
  const [changing, setChanging] = useState<Parameter>();
  const navigate = useNavigate();
  // Parameters that are a table have their own screen.
  function show(p: Parameter) {
    const tab = sheets[p.code];
    if (tab) void navigate({ to: '/fees', search: { tab } });
    else if (p.isEditable && may(`POST ${update}`)) setChanging(p);
    else setOpen(p);
  }
  return (
    <>
      <List
        path={path}
        title="parameter.title"
        columns={columns}
        filters={filters}
        size={undefined}
        id={(p) => String(p.id)}
        open={show}
      />
      <Whole of={open} title="parameter.one" onClose={() => setOpen(undefined)} />
      {changing && <Change of={changing} onClose={() => setChanging(undefined)} />}
    </>
  );
}

/** The added and removed items of a list, or the changed members of another object. */
function Changes({ before, after, list }: { before: object; after: object; list?: string }) {
  const { t } = useTranslation();
  if (!list) return <Diff before={before} after={after} />;
  const [old, next] = [(before as Record<string, string[]>)[list]!, (after as Record<string, string[]>)[list]!];
  const [gone, come] = [old.filter((v) => !next.includes(v)), next.filter((v) => !old.includes(v))];
  if (gone.length + come.length === 0) return <Diff before={{}} after={{}} />;
  return (
    <Lines type="unordered" data-testid="diff">
      {gone.map((v) => (
        <Lines.Item key={v}>
          {t('parameter.gone')}{' '}
          <del>
            <bdi>{v}</bdi>
          </del>
        </Lines.Item>
      ))}
      {come.map((v) => (
        <Lines.Item key={v}>
          {t('parameter.come')}{' '}
          <ins>
            <bdi>{v}</bdi>
          </ins>
        </Lines.Item>
      ))}
    </Lines>
  );
}

/** A parameter that is one list of texts is edited as a list, any other as JSON. */
function Change({ of, onClose }: { of: Parameter; onClose: () => void }) {
  const { t } = useTranslation();
  const list = asList(of.json);
  const shape = shapes[of.code];
  const now = (values: Values): object => (list ? { [list]: values[list] ?? [] } : (values.json ?? {}));
  const fields: Input<Values>[] = list
    ? [{ name: list, title: 'parameter.values', kind: 'list', required: true }]
    : [{ name: 'json', title: 'parameter.json', kind: 'json', required: true }];
  return (
    <Write
      method="post"
      path={update}
      title="parameter.change"
      record={of.id}
      opened
      onClose={onClose}
      touches={[path]}
      initial={list ? of.json : { json: of.json }}
      fields={fields}
      before={(values) => (
        <Stack gap="xs">
          <Text fw={700}>
            <bdi dir="ltr">{of.code}</bdi> · <ParameterName of={of} />
          </Text>
          {shape && <Text size="sm">{t(shape)}</Text>}
          <div style={{ overflowWrap: 'anywhere' }}>
            <Changes before={of.json} after={now(values)} list={list} />
          </div>
        </Stack>
      )}
      make={(values: Values) => ({ id: of.id, ifUpdatedAt: of.updatedAt, json: now(values) as Values })}
    />
  );
}
