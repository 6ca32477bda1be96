/** The lists of an account's file. */
import { Alert, Card, Code, SimpleGrid, Stack, Table, Title } from '@mantine/core';
import { useState } from 'react';
import type { TextKey } from '../text/key';
import { useTranslation } from 'react-i18next';
import { Problem } from '../app/problem';
import { useMay } from '../app/session';
import { List, type Column, type Row } from '../kit/list';
import { Person } from '../kit/person';
import { useRead } from '../kit/read';
import { Whole } from '../kit/record';
import { Id, Money, Status, Time } from '../kit/show';
import { Word } from '../kit/word';
import { Write } from '../kit/write';
import { Act, Brief, Detail, Links, Target } from '../app/entry';
import { File } from './file';
import type { Withdrawal } from '../money/hold';
import { statementColumns } from '../money/statement';
import { Case, columns as queued, queuePath } from '../money/withdrawals';
import { loginColumns, Refused, type Login } from './logins';
import { Address } from './parts';

interface Of {
  id: string;
}

export function Logins({ id }: Of) {
  const [open, setOpen] = useState<Login>();
  return (
    <>
      <List
        path="/admin/login-history"
        title="user.logins"
        columns={loginColumns}
        fixed={{ userId: id }}
        inside
        id={(l) => l.id}
        open={setOpen}
      />
      <Whole of={open} title="story.login" onClose={() => setOpen(undefined)}>
        {open && <Refused of={open} />}
      </Whole>
    </>
  );
}

export const sums = '/admin/get-member-asset-balances-sum';

const balances: Column<Row<typeof sums>>[] = [
  { key: 'currencyCode', title: 'money.currency' },
  { key: 'balance', title: 'money.balance', end: true, show: (s) => <Money amount={s.balance} /> },
  { key: 'available', title: 'money.available', end: true, show: (s) => <Money amount={s.available} /> },
  { key: 'locked', title: 'money.locked', end: true, show: (s) => <Money amount={s.locked} /> },
];

export function Balances({ id }: Of) {
  return (
    <List
      path={sums}
      title="money.balances"
      columns={balances}
      fixed={{ userId: id }}
      inside
      size={undefined}
      id={(s) => s.currencyCode}
    />
  );
}

export function Statement({ id }: Of) {
  return (
    <List
      path="/process/get-process-admin"
      title="money.statement"
      columns={statementColumns}
      fixed={{ userId: id }}
      inside
      id={() => ''}
    />
  );
}

/** The withdrawals of the queue. A held one shows what it waits for. */
export function Withdrawals({ id }: Of) {
  const [open, setOpen] = useState<Withdrawal>();
  return (
    <>
      <List
        path={queuePath}
        title="money.withdrawals"
        columns={queueColumns}
        fixed={{ userId: id }}
        inside
        id={(w) => w.id}
        open={setOpen}
      />
      <Whole of={open} title="money.withdrawal" onClose={() => setOpen(undefined)}>
        {open && <Case of={open} onDone={() => setOpen(undefined)} />}
      </Whole>
    </>
  );
}

const queueColumns = queued.filter((c) => c.key !== 'fullName');

const blockages: Column<Row<'/blockage/get-blockage-history'>>[] = [
  { key: 'createdAt', title: 'money.at', show: (b) => <Time at={b.createdAt} /> },
  { key: 'amount', title: 'money.amount', end: true, show: (b) => <Money amount={b.amount} unit={b.currencyCode} /> },
  { key: 'status', title: 'money.status', show: (b) => <Status of={b.status} /> },
  { key: 'description', title: 'money.reason' },
];

export function Blockages({ id }: Of) {
  return (
    <List
      path="/blockage/get-blockage-history"
      title="money.blockages"
      columns={blockages}
      fixed={{ userId: id }}
      inside
      id={(b) => b.id}
    />
  );
}

const mails: Column<Row<'/admin/get-email-change-history'>>[] = [
  { key: 'createdAt', title: 'login.at', show: (m) => <Time at={m.createdAt} /> },
  { key: 'oldEmail', title: 'diff.before', show: (m) => <bdi dir="ltr">{m.oldEmail}</bdi> },
  { key: 'newEmail', title: 'diff.after', show: (m) => <bdi dir="ltr">{m.newEmail}</bdi> },
  { key: 'changedBy', title: 'audit.actor', show: (m) => <Person id={m.changedBy} /> },
];

export function Mails({ id }: Of) {
  return (
    <List
      path="/admin/get-email-change-history"
      title="user.mails"
      columns={mails}
      fixed={{ userId: id }}
      inside
      filters={[
        { name: 'startDate', title: 'list.from', kind: 'date' },
        { name: 'endDate', title: 'list.to', kind: 'date' },
      ]}
      id={(m) => String(m.id)}
    />
  );
}

type Document = Row<'/user/get-documents'>;
const documents: Column<Document>[] = [
  { key: 'createdAt', title: 'login.at', show: (d) => <Time at={d.createdAt} /> },
  { key: 'name', title: 'user.file' },
  { key: 'reason', title: 'user.decision', show: (d) => <Status of={d.reason} /> },
  { key: 'status', title: 'users.status', show: (d) => <Status of={d.status} /> },
  { key: 'type', title: 'users.type', show: (d) => <Word of="state.type" number={d.type} />, hidden: true },
  { key: 'description', title: 'user.description', hidden: true },
  { key: 'mimeType', title: 'user.mime', hidden: true },
];

export function Documents({ id }: Of) {
  const [open, setOpen] = useState<Document>();
  return (
    <>
      <List
        path="/user/get-documents"
        title="user.tab.documents"
        columns={documents}
        fixed={{ userId: id }}
        inside
        filters={[
          { name: 'type', title: 'users.type' },
          { name: 'status', title: 'users.status' },
          { name: 'reason', title: 'user.decision' },
        ]}
        id={(d) => d.id}
        open={setOpen}
      />
      <Whole of={open} title="story.document" onClose={() => setOpen(undefined)}>
        {open && <File key={open.id} of={open} />}
      </Whole>
    </>
  );
}

type Entry = Row<'/admin/audit'>;
const about: Column<Entry>[] = [
  { key: 'at', title: 'audit.at', show: (e) => <Time at={e.at} exact /> },
  { key: 'action', title: 'audit.action', show: (e) => <Act of={e.action} /> },
  { key: 'outcome', title: 'audit.outcome', show: (e) => <Status of={e.outcome} /> },
  { key: 'detail', title: 'user.detail', show: (e) => <Detail of={e.detail} /> },
  { key: 'actorId', title: 'audit.actor', show: (e) => <Brief of={e.actorId} /> },
  { key: 'userId', title: 'audit.user', show: (e) => <Brief of={e.userId} />, hidden: true },
  { key: 'target', title: 'audit.target', show: (e) => <Target of={e} />, hidden: true },
  { key: 'ip', title: 'audit.ip', show: (e) => <Address of={e.ip} /> },
  { key: 'requestId', title: 'audit.request', show: (e) => <Id of={e.requestId} short />, hidden: true },
];
/** The columns of the records of the timeline, by the kind of the event. */
export const columnsOf = {
  login: loginColumns,
  mail: mails,
  document: documents,
  blockage: blockages,
  role: undefined,
  audit: about,
  act: about,
  movement: about,
} as const;

const by = about.map((c) =>
  c.key === 'actorId' ? { ...c, hidden: true } : c.key === 'userId' ? { ...c, hidden: false } : c,
);

function Entries({ fixed, columns, title }: { fixed: object; columns: typeof about; title: TextKey }) {
  const [open, setOpen] = useState<Entry>();
  return (
    <>
      <List
        path="/admin/audit"
        title={title}
        columns={columns}
        fixed={fixed}
        inside
        id={(e) => e.id}
        open={setOpen}
        filters={[
          { name: 'action', title: 'audit.action' },
          { name: 'from', title: 'list.from', kind: 'date' },
          { name: 'to', title: 'list.to', kind: 'date' },
        ]}
      />
      <Whole of={open} title="audit.entry" onClose={() => setOpen(undefined)}>
        {open && <Links entry={open} onLeave={() => setOpen(undefined)} />}
      </Whole>
    </>
  );
}

/** The audit entries about the account, including its challenges, which have no own list. */
export const Audit = ({ id }: Of) => <Entries fixed={{ userId: id }} columns={about} title="user.audit" />;
/** The audit entries of the account as the actor. */
export const Acts = ({ id }: Of) => <Entries fixed={{ actorId: id }} columns={by} title="user.acts" />;

export function Limits({ id }: Of) {
  const { t } = useTranslation();
  const { data: l, error } = useRead('/admin/user/limit-info', { userId: id });
  if (!l) return <Problem of={error} />;
  const parts = [
    {
      title: 'limits.left',
      of: [
        ['limits.inDaily', l.creditRemainingDaily],
        ['limits.outDaily', l.debitRemainingDaily],
        ['limits.inMonthly', l.creditRemainingMonthly],
        ['limits.outMonthly', l.debitRemainingMonthly],
      ],
    },
    {
      title: 'limits.send',
      of: [
        ['limits.tryDaily', l.sendLimitTRYDaily],
        ['limits.tryMonthly', l.sendLimitTRYMonthly],
        ['limits.cryptoDaily', l.sendLimitCryptoDaily],
        ['limits.cryptoMonthly', l.sendLimitCryptoMonthly],
      ],
    },
    {
      title: 'limits.receive',
      of: [
        ['limits.tryDaily', l.receiveLimitTRYDaily],
        ['limits.cryptoDaily', l.receiveLimitCryptoDaily],
      ],
    },
  ] as const;
  return (
    <SimpleGrid cols={{ base: 1, md: 3 }} data-testid="limits">
      {parts.map((part) => (
        <Card key={part.title} withBorder>
          <Title order={2} size="h5" mb="xs">
            {t(part.title)}
          </Title>
          <Table withRowBorders={false}>
            <Table.Tbody>
              {part.of.map(([title, amount]) => (
                <Table.Tr key={title}>
                  <Table.Th scope="row" fw={400}>
                    {t(title)}
                  </Table.Th>
                  <Table.Td ta="end">
                    <Money amount={amount} unit="TRY" />
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </Card>
      ))}
    </SimpleGrid>
  );
}

export function Roles({ id }: Of) {
  const { t } = useTranslation();
  const may = useMay();
  const path = '/admin/user-roles';
  const held = useRead(path, { userId: id });
  const all = useRead('/admin/roles', undefined, { enabled: may('GET /admin/roles') });
  const others = (all.data ?? [])
    .filter((r) => !held.data?.some((h) => h.roleCode === r.code))
    .map((r) => ({ value: r.code, label: r.name ? `${r.code} · ${r.name}` : r.code }));
  const touches = [path, 'story', '/admin/audit'];
  return (
    <Stack data-testid="roles">
      <Title order={2} size="h4">
        {t('user.tab.roles')}
      </Title>
      <Problem of={held.error} />
      {held.data?.length === 0 && <Alert color="gray">{t('list.empty')}</Alert>}
      <Table>
        <Table.Tbody>
          {held.data?.map((r) => (
            <Table.Tr key={r.roleCode}>
              <Table.Td>
                <Code dir="ltr">{r.roleCode}</Code>
              </Table.Td>
              <Table.Td>
                <Time at={r.createdAt} />
              </Table.Td>
              <Table.Td ta="end">
                <Write
                  method="delete"
                  path={path}
                  title="user.role.take"
                  touches={touches}
                  fields={[]}
                  fixed={{ userId: id, roleCode: r.roleCode }}
                  before={() => <Code dir="ltr">{r.roleCode}</Code>}
                />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      <Write
        method="post"
        path={path}
        title="user.role.give"
        touches={touches}
        fixed={{ userId: id }}
        fields={[{ name: 'roleCode', title: 'user.role', required: true, kind: others.length ? others : 'text' }]}
        button={{ w: 'fit-content' }}
      />
    </Stack>
  );
}
