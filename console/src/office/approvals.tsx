/** Requests that need a second person: changes, requester and time left; approve or reject. */
import { Alert, Button, Group, Stack, Table, Text } from '@mantine/core';
import { useInterval } from '@mantine/hooks';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { Once, type Made } from '../access/once';
import { useAct } from '../app/act';
import { actName } from '../app/actname';
import { Problem } from '../app/problem';
import { useMay, useSession } from '../app/session';
import { useWaiting } from '../app/waiting';
import { AnchorLink } from '../app/frame/link';
import { titleOf, Value } from '../kit/fields';
import { List, type Column, type FilterOf, type Row } from '../kit/list';
import { Person } from '../kit/person';
import { useRead } from '../kit/read';
import { Diff, Whole } from '../kit/record';
import { dateFormat, Id, Status, textOf, Time } from '../kit/show';
import { Write } from '../kit/write';
import { names, Owner } from '../money/parts';
import type { TextKey } from '../text/key';

const path = '/admin/approvals';
const one = '/admin/approvals/{id}';
const approve = '/admin/approvals/{id}/approve';
const refuse = '/admin/approvals/{id}/refuse';
const fetchKey = '/admin/approvals/{id}/fetch';
type Approval = Row<typeof path>;

/** The changes of a request, each "ACTION target of account: detail" of the audit, in words. Rows show the account. */
function Changes({ of }: { of: string }) {
  const { t } = useTranslation();
  const words = of.split('; ').map((change) => {
    const [, action = '', detail = ''] = /^([A-Z][A-Z0-9_]*)(?: [^:]*)?(: .*)?$/s.exec(change) ?? [];
    return action ? actName(action, t) + detail : change;
  });
  return <bdi title={of}>{words.join('; ')}</bdi>;
}

const columns: Column<Approval>[] = [
  { key: 'requestedAt', title: 'approvals.at', card: 'end', show: (a) => <Time at={a.requestedAt} /> },
  { key: 'summary', title: 'approvals.summary', card: 'head', show: (a) => <Changes of={a.summary} /> },
  {
    key: 'path',
    title: 'approvals.call',
    show: (a) => (
      <bdi dir="ltr">
        {a.method} {a.path}
      </bdi>
    ),
    hidden: true,
  },
  { key: 'requestedBy', title: 'approvals.by', card: 'start', show: (a) => <Person id={a.requestedBy} /> },
  { key: 'status', title: 'approvals.status', card: 'top', show: (a) => <Status of={a.status} /> },
  { key: 'expiresAt', title: 'approvals.left', show: (a) => <Left of={a} /> },
  { key: 'decidedBy', title: 'approvals.decidedBy', show: (a) => <Person id={a.decidedBy} />, hidden: true },
  { key: 'reason', title: 'approvals.reason', hidden: true },
];

const filters: FilterOf<typeof path>[] = [
  { name: 'status', title: 'approvals.status', kind: ['PENDING', 'APPROVED', 'REFUSED', 'EXPIRED', 'FAILED'] },
];

export default function Approvals() {
  const [open, setOpen] = useState<Approval>();
  return (
    <>
      <List
        path={path}
        title="approvals.title"
        columns={columns}
        filters={filters}
        id={(a) => a.id}
        open={setOpen}
        empty="approvals.none"
        above={<Held />}
        next={{ title: 'approvals.next', to: '/requests', needs: 'GET /admin/deploy-request' }}
      />
      {open && <Case first={open} onClose={() => setOpen(undefined)} />}
    </>
  );
}

/** Held withdrawals, which have their own screen. */
function Held() {
  const { t } = useTranslation();
  const held = useWaiting().waiting.find((w) => w.queue === 'held');
  if (!held?.count) return null;
  return (
    <AnchorLink to="/held" size="sm" data-testid="to-held">
      {t('approvals.held', { count: held.count })}
    </AnchorLink>
  );
}

/** The remaining time of a pending request; otherwise the time of the decision or expiry. */
function Left({ of }: { of: Approval }) {
  const [now, setNow] = useState(() => Date.now());
  useInterval(() => setNow(Date.now()), 1000, { autoInvoke: true });
  const seconds = Math.floor((Date.parse(of.expiresAt) - now) / 1000);
  if (of.status !== 'PENDING' || seconds < 0) return <Time at={of.decidedAt ?? of.expiresAt} />;
  return (
    <bdi dir="ltr">
      {Math.floor(seconds / 60)}:{String(seconds % 60).padStart(2, '0')}
    </bdi>
  );
}

/** One request, read again while it is open: another user may decide meanwhile. */
function Case({ first, onClose }: { first: Approval; onClose: () => void }) {
  const { t, i18n } = useTranslation();
  const may = useMay();
  const { userId } = useSession();
  const [made, setMade] = useState<Made>();
  const act = useAct('post', approve, [path, one], 'approvals.approved');
  const get = useAct('post', fetchKey, [path, one, '/admin/service-keys'], 'approvals.fetched');
  const read = useRead(one, undefined, { places: { id: first.id }, every: 5000, enabled: may(`GET ${one}`) });
  const now = read.data ?? first;
  const own = now.requestedBy === userId;
  return (
    <Whole of={now} id={first.id} title="approvals.one" onClose={onClose} columns={columns}>
      <Stack>
        <Text data-testid="summary">
          <Changes of={now.summary} />
        </Text>
        <Group gap="xs">
          <Status of={now.status} />
          <Left of={now} />
          <Text size="sm" c="dimmed">
            {t('approvals.by')}
          </Text>
          <Owner userId={now.requestedBy} bare />
          {now.decidedBy && (
            <>
              <Text size="sm" c="dimmed">
                {t('approvals.decidedBy')}
              </Text>
              <Owner userId={now.decidedBy} bare />
            </>
          )}
        </Group>
        <Problem of={read.error} />
        <Asked of={now} />
        {(now.status === 'PENDING' || now.fetchUntil) && (
          <>
            {own && (
              <Alert color="yellow" data-testid="own">
                {now.fetchUntil
                  ? t('approvals.fetchLead', {
                      at: dateFormat(i18n.language, 'medium').format(new Date(now.fetchUntil)),
                    })
                  : t('approvals.own')}
              </Alert>
            )}
            <Problem of={act.problem ?? get.problem} />
            <Group className="decide">
              {own && now.fetchUntil && may(`POST ${fetchKey}`) && (
                <Button
                  loading={get.busy}
                  data-testid="fetch"
                  onClick={() => {
                    void get.run(undefined, { id: now.id }).then((answer) => setMade(madeOf(answer)));
                  }}
                >
                  {t('approvals.fetch')}
                </Button>
              )}
              {!own && now.status === 'PENDING' && may(`POST ${approve}`) && (
                <Button
                  loading={act.busy}
                  data-testid="approve"
                  onClick={() => {
                    void act.run(undefined, { id: now.id });
                  }}
                >
                  {t('approvals.approve')}
                </Button>
              )}
              <Write
                method="post"
                path={refuse}
                title={own ? 'approvals.takeBack' : 'approvals.refuse'}
                places={{ id: now.id }}
                fields={[{ name: 'reason', title: 'approvals.reason', kind: 'area', required: true }]}
                touches={[path, one]}
              />
            </Group>
          </>
        )}
      </Stack>
      {act.view}
      {get.view}
      <Once of={made} onClose={() => setMade(undefined)} />
    </Whole>
  );
}

/** The key in the answer to a fetch. */
function madeOf(answer: unknown): Made | undefined {
  const made = (answer as { data?: { result?: { data?: Partial<Made> } } } | undefined)?.data?.result?.data;
  return made?.name && made.key ? { name: made.name, key: made.key } : undefined;
}

/** Keys of the names of the changed fields. */
const kinds: Record<string, TextKey> = {
  user: 'money.user',
  treasury: 'money.treasury',
  deposit: 'money.transaction',
  withdrawal: 'money.withdrawal',
};

/** Values that are a code, with the key of their name. */
const directions: Record<string, TextKey> = { 'type C': 'money.credit', 'type D': 'money.debit' };

/** The subject of a request: both sides of each change as of now, and the input. */
function Asked({ of }: { of: Approval }) {
  const { t } = useTranslation();
  const { userId } = { ...of.changes?.[0]?.before, ...of.request } as { userId?: unknown };
  return (
    <>
      {of.refusal && (
        <Alert color="red" title={t('approvals.refusal')} data-testid="refusal">
          {of.refusal}
        </Alert>
      )}
      {typeof userId === 'string' && <Owner userId={userId} />}
      {of.changes?.map((c) => (
        <Stack key={c.of + c.id} gap={4} data-testid="change">
          <Text size="sm" fw={600}>
            {kinds[c.of] ? t(kinds[c.of]!) : c.of} {c.id && <Id of={c.id} short />}
          </Text>
          <Diff before={c.before} after={c.after} names={names} all />
        </Stack>
      ))}
      {of.request && (
        <Stack gap={4}>
          <Text size="sm" fw={600}>
            {t('approvals.request')}
          </Text>
          <Table withTableBorder data-testid="asked">
            <Table.Tbody>
              {Object.entries(of.request).map(([name, value]) => {
                const title = names[name] ?? titleOf(name);
                const way = directions[`${name} ${textOf(value)}`];
                return (
                  <Table.Tr key={name}>
                    <Table.Th w="35%">{title ? t(title) : <bdi dir="ltr">{name}</bdi>}</Table.Th>
                    <Table.Td style={{ overflowWrap: 'anywhere' }}>
                      {way ? t(way) : <Value name={name} of={value} />}
                    </Table.Td>
                  </Table.Tr>
                );
              })}
            </Table.Tbody>
          </Table>
        </Stack>
      )}
    </>
  );
}
