/** The queue of withdrawals: what waits for the hot wallet or has timed out, and what becomes of it. */
import { Group, Stack, Textarea } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { Bulk } from '../kit/bulk';
import { List, type Column, type FilterOf, type Row } from '../kit/list';
import { Whole } from '../kit/record';
import { Id, Status, Time } from '../kit/show';
import { madeAt, Owner, Standing, sums } from './parts';
import { Explorer } from './statement';

const path = '/admin/get-withdrawal-crypto-queue';
const decide = '/admin/update-wallet-withdrawal-crypto-queue';
type Withdrawal = Row<typeof path>;

const columns: Column<Withdrawal>[] = [
  { key: 'id', title: 'money.withdrawal', show: (w) => <Id of={w.id} short /> },
  { key: 'userId', title: 'money.user', show: (w) => <Id of={w.userId} short /> },
  { key: 'code', title: 'money.currency' },
  { key: 'network', title: 'money.network' },
  { key: 'address', title: 'money.address', show: (w) => <Id of={w.address} short /> },
  {
    key: 'at' as 'id',
    title: 'money.since',
    show: (w) => <Time at={madeAt(w.id)} />,
    text: (w) => new Date(madeAt(w.id)).toISOString(),
  },
  { key: 'transactionDescription', title: 'money.status', show: (w) => <Status of={w.transactionDescription} /> },
  { key: 'explorerUrl', title: 'money.explorer', show: (w) => <Explorer url={w.explorerUrl} />, hidden: true },
];

const filters: FilterOf<typeof path>[] = [
  { name: 'fullName', title: 'users.fullName' },
  { name: 'userId', title: 'money.user' },
  { name: 'code', title: 'money.currency' },
  { name: 'network', title: 'money.network' },
  { name: 'address', title: 'money.address' },
  { name: 'txId', title: 'money.txId' },
  { name: 'id', title: 'money.withdrawal' },
  { name: 'isActive', title: 'money.open', kind: 'flag' },
  {
    name: 'statusCode',
    title: 'money.status',
    // The numbers of the last two may be set otherwise (D-TX-02); then they are typed into the address.
    kind: ['4 success', '5 waitingApproval', '6 hotWalletInsufficientBalance', '7 timeOut'].map((label) => ({
      value: label.slice(0, 1),
      label,
    })),
  },
  { name: 'startDate', title: 'list.from', kind: 'date' },
  { name: 'endDate', title: 'list.to', kind: 'date' },
];

/** The states that a decision begins from (D-TX-08): waits for the hot wallet, timed out. */
const undecided = new Set(['hotWalletInsufficientBalance', 'timeOut']);

export default function Withdrawals() {
  const [open, setOpen] = useState<Withdrawal>();
  return (
    <Stack>
      <List
        path={path}
        title="money.withdrawals"
        columns={columns}
        filters={filters}
        id={(w) => w.id}
        open={setOpen}
        bulk={(rows, clear) => <Decisions rows={rows} onDone={clear} />}
      />
      <Whole of={open} title="money.withdrawal" onClose={() => setOpen(undefined)}>
        {open && (
          <>
            <Owner userId={open.userId} />
            <Standing of={[{ userId: open.userId, code: open.code }]} title="money.now" />
            <Decisions rows={[open]} onDone={() => setOpen(undefined)} />
          </>
        )}
      </Whole>
    </Stack>
  );
}

/** What has been decided on stands by: it is not sent again. */
function Decisions({ rows, onDone }: { rows: Withdrawal[]; onDone: () => void }) {
  const { t } = useTranslation();
  const [reason, setReason] = useState('');
  const common = {
    method: 'post' as const,
    path: decide as typeof decide,
    rows: rows.filter((w) => undecided.has(w.transactionDescription)),
    touches: [path, sums],
    onDone,
    name: (w: Withdrawal) => <Line of={w} />,
    ready: reason.trim() !== '',
    children: (
      <Textarea
        label={t('money.reason')}
        required
        autosize
        minRows={2}
        maxLength={500}
        value={reason}
        data-testid="field-reason"
        onChange={(event) => setReason(event.currentTarget.value)}
      />
    ),
  };
  if (common.rows.length === 0) return null;
  return (
    <Group gap="xs">
      <Bulk
        {...common}
        title="money.sent"
        body={(w) => ({ withdrawalId: w.id, status: 4, currencyCode: w.code, reason })}
      />
      <Bulk {...common} title="money.toApproval" body={(w) => ({ withdrawalId: w.id, status: 5, reason })} />
    </Group>
  );
}

function Line({ of }: { of: Withdrawal }) {
  return (
    <Group gap="xs">
      <Id of={of.id} short />
      <Id of={of.userId} short />
      <bdi dir="ltr">
        {of.code} / {of.network}
      </bdi>
      <Id of={of.address} short />
      <Status of={of.transactionDescription} />
    </Group>
  );
}
