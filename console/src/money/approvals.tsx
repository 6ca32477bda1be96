/** Requests that wait for a second person: what each would change, who asked, how long it lives; yes or no. */
import { Alert, Button, Group, Stack, Text } from '@mantine/core';
import { useInterval } from '@mantine/hooks';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useAct } from '../app/act';
import { Problem } from '../app/problem';
import { useMay, useSession } from '../app/session';
import { List, type Column, type FilterOf, type Row } from '../kit/list';
import { useRead } from '../kit/read';
import { Whole } from '../kit/record';
import { Id, Status, Time } from '../kit/show';
import { Write } from '../kit/write';

const path = '/admin/approvals';
const one = '/admin/approvals/{id}';
const approve = '/admin/approvals/{id}/approve';
const refuse = '/admin/approvals/{id}/refuse';
type Approval = Row<typeof path>;

const columns: Column<Approval>[] = [
  { key: 'requestedAt', title: 'approvals.at', show: (a) => <Time at={a.requestedAt} /> },
  {
    key: 'path',
    title: 'approvals.call',
    show: (a) => (
      <bdi dir="ltr">
        {a.method} {a.path}
      </bdi>
    ),
  },
  { key: 'summary', title: 'approvals.summary' },
  { key: 'requestedBy', title: 'approvals.by', show: (a) => <Id of={a.requestedBy} short /> },
  { key: 'status', title: 'approvals.status', show: (a) => <Status of={a.status} /> },
  { key: 'expiresAt', title: 'approvals.left', show: (a) => <Left of={a} /> },
  { key: 'decidedBy', title: 'approvals.decidedBy', show: (a) => <Id of={a.decidedBy} short />, hidden: true },
  { key: 'reason', title: 'approvals.reason', hidden: true },
];

const filters: FilterOf<typeof path>[] = [
  { name: 'status', title: 'approvals.status', kind: ['PENDING', 'APPROVED', 'REFUSED', 'EXPIRED', 'FAILED'] },
];

export default function Approvals() {
  const [open, setOpen] = useState<Approval>();
  return (
    <>
      <List path={path} title="approvals.title" columns={columns} filters={filters} id={(a) => a.id} open={setOpen} />
      {open && <Case first={open} onClose={() => setOpen(undefined)} />}
    </>
  );
}

/** How long a request that waits still lives; the instant of its end for any other. */
function Left({ of }: { of: Approval }) {
  const [now, setNow] = useState(() => Date.now());
  useInterval(() => setNow(Date.now()), 1000, { autoInvoke: true });
  const seconds = Math.floor((Date.parse(of.expiresAt) - now) / 1000);
  if (of.status !== 'PENDING' || seconds < 0) return <Time at={of.expiresAt} />;
  return (
    <bdi dir="ltr">
      {Math.floor(seconds / 60)}:{String(seconds % 60).padStart(2, '0')}
    </bdi>
  );
}

/** One request, as it is now: somebody else may decide while it is looked at. */
function Case({ first, onClose }: { first: Approval; onClose: () => void }) {
  const { t } = useTranslation();
  const may = useMay();
  const { userId } = useSession();
  const act = useAct('post', approve, [path, one], 'approvals.approved');
  const read = useRead(one, undefined, { places: { id: first.id }, every: 5000, enabled: may(`GET ${one}`) });
  const now = read.data ?? first;
  const own = now.requestedBy === userId;
  return (
    <Whole of={now} title="approvals.one" onClose={onClose}>
      <Stack>
        <Text data-testid="summary">
          <bdi>{now.summary}</bdi>
        </Text>
        <Group gap="xs">
          <Status of={now.status} />
          <Left of={now} />
        </Group>
        <Problem of={read.error} />
        {now.status === 'PENDING' && (
          <>
            {own && (
              <Alert color="yellow" data-testid="own">
                {t('approvals.own')}
              </Alert>
            )}
            <Problem of={act.problem} />
            <Group>
              {!own && may(`POST ${approve}`) && (
                <Button
                  loading={act.busy}
                  data-testid="approve"
                  onClick={() => {
                    void act.run(undefined as never, { id: now.id });
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
    </Whole>
  );
}
