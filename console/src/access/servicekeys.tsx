/** The keys of service clients. The value of a key is shown once, when it is added or rotated. */
import { Group, Text } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { Schemas } from '../app/api';
import { useMay } from '../app/session';
import { Bulk } from '../kit/bulk';
import { List, type Column, type Row } from '../kit/list';
import { useRead } from '../kit/read';
import { Whole } from '../kit/record';
import { Ago, Coded, Nothing, Time } from '../kit/show';
import { Write, type Input } from '../kit/write';
import { Word } from '../kit/word';
import type { TextKey } from '../text/key';
import { FirewallNote, Once, type Made } from './once';

const path = '/admin/service-keys';
const rotate = '/admin/service-keys/rotate';
type Key = Row<typeof path>;

const columns: Column<Key>[] = [
  { key: 'name', title: 'serviceKeys.name', show: (k) => <bdi dir="ltr">{k.name}</bdi> },
  { key: 'role', title: 'serviceKeys.role', show: (k) => <Role of={k.role} /> },
  {
    key: 'actions',
    title: 'serviceKeys.actions',
    show: (k) => <Codes of={k.actions} />,
    text: (k) => k.actions.join(' '),
  },
  {
    key: 'callback',
    title: 'serviceKeys.callback',
    show: (k) => (k.callback ? <Coded of={k.callback} /> : <Nothing />),
    hidden: true,
  },
  { key: 'ip', title: 'serviceKeys.ip', show: (k) => <Networks of={k.ip} />, text: (k) => k.ip.join(' ') },
  { key: 'createdAt', title: 'serviceKeys.created', show: (k) => <Ago at={k.createdAt} /> },
  { key: 'rotatedAt', title: 'serviceKeys.rotated', show: (k) => <Ago at={k.rotatedAt} /> },
  { key: 'oldUntil', title: 'serviceKeys.oldUntil', show: (k) => <Time at={k.oldUntil} />, hidden: true },
];

function Role({ of }: { of: string }) {
  return of ? <bdi dir="ltr">{of}</bdi> : <Word of="serviceKeys.noRole" />;
}

function Codes({ of }: { of: string[] }) {
  return of.length > 0 ? <Coded of={of.join(', ')} /> : <Nothing />;
}

function Networks({ of }: { of: string[] }) {
  if (of.length === 0) return <Word of="serviceKeys.anywhere" />;
  return <bdi dir="ltr">{of.join(', ')}</bdi>;
}

export default function ServiceKeys() {
  const may = useMay();
  const [open, setOpen] = useState<Key>();
  const [made, setMade] = useState<Made>();
  const scope = useScope();
  const roles = useRead('/admin/roles', undefined, { enabled: may('GET /admin/roles') });
  // Without data, the call must be approved by a second person first.
  const show = (answer: unknown) => setMade((answer as { data?: Partial<Made> }).data?.key ? said(answer) : undefined);
  return (
    <>
      <List
        path={path}
        title="serviceKeys.title"
        empty="serviceKeys.none"
        columns={columns}
        size={undefined}
        id={(k) => k.name}
        open={setOpen}
        actions={
          <Write
            method="post"
            path={path}
            title="serviceKeys.add"
            button={{ variant: 'filled' }}
            touches={[path]}
            onDone={show}
            fields={[
              { name: 'name', title: 'serviceKeys.name', help: 'serviceKeys.nameHelp', required: true },
              {
                name: 'role',
                title: 'serviceKeys.role',
                help: 'serviceKeys.roleHelp',
                kind: roles.data ? roles.data.map((r) => ({ value: r.code, label: `${r.name} · ${r.code}` })) : 'text',
              },
              { name: 'ip', title: 'serviceKeys.ip', help: 'serviceKeys.ipHelp', kind: 'list' },
              ...scope,
            ]}
            before={() => <FirewallNote />}
          />
        }
      />
      <Whole of={open} title="serviceKeys.one" onClose={() => setOpen(undefined)}>
        {open && (
          <>
            <Text fw={600}>
              <bdi dir="ltr">{open.name}</bdi>
            </Text>
            <Group gap="xs">
              <Write
                method="patch"
                path={path}
                title="serviceKeys.change"
                touches={[path]}
                fields={scope}
                initial={{ actions: open.actions, callback: open.callback ?? '' }}
                fixed={{ name: open.name }}
                make={(v) => ({ callback: '', ...v })}
                onDone={() => setOpen(undefined)}
              />
              <Write
                method="post"
                path={rotate}
                title="serviceKeys.rotate"
                touches={[path]}
                fields={[]}
                fixed={{ name: open.name }}
                onDone={(answer) => {
                  setOpen(undefined);
                  show(answer);
                }}
                before={() => <Lead of="serviceKeys.rotateLead" name={open.name} />}
              />
              <Bulk
                method="delete"
                path={path}
                title="serviceKeys.remove"
                go="serviceKeys.remove"
                rows={[open]}
                touches={[path]}
                onDone={() => setOpen(undefined)}
                name={(k) => <bdi dir="ltr">{k.name}</bdi>}
                body={(k) => ({ name: k.name })}
                button={{ color: 'red', variant: 'light' }}
              >
                <Lead of="serviceKeys.removeLead" name={open.name} />
              </Bulk>
            </Group>
          </>
        )}
      </Whole>
      <Once of={made} onClose={() => setMade(undefined)} />
    </>
  );
}

/** The fields of the challenges that a key may start. */
function useScope(): Input<Pick<Schemas['AddServiceKeyRequest'], 'actions' | 'callback'>>[] {
  const may = useMay();
  const actions = useRead('/admin/system/mfa/actions', undefined, { enabled: may('GET /admin/system/mfa/actions') });
  return [
    {
      name: 'actions',
      title: 'serviceKeys.actions',
      help: 'serviceKeys.actionsHelp',
      kind: actions.data ? { many: actions.data.map((a) => a.actionCode) } : 'list',
    },
    { name: 'callback', title: 'serviceKeys.callback', help: 'serviceKeys.callbackHelp' },
  ];
}

function said(answer: unknown): Made {
  return (answer as { data: Made }).data;
}

function Lead({ of, name }: { of: TextKey; name: string }) {
  const { t } = useTranslation();
  return <Text size="sm">{t(of, { name })}</Text>;
}
