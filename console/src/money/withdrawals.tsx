/** The queue of withdrawals: customer, amount, age, and the decisions. */
import type { TFunction } from 'i18next';
import { Group, Stack, Text, Textarea } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { Bulk } from '../kit/bulk';
import { List, type Column, type FilterOf } from '../kit/list';
import { Named, Person } from '../kit/person';
import { Whole } from '../kit/record';
import { Ago, Coded, Id, Money, Status } from '../kit/show';
import { AtStake, Because, HeldCase, releasable, type Withdrawal } from './hold';
import { Owner, Standing, sums } from './parts';
import { Explorer } from './statement';
import { Explained } from './verdict';
import type { TextKey } from '../text/key';

export const queuePath = '/admin/get-withdrawal-crypto-queue';
const path = queuePath;
const decide = '/admin/update-wallet-withdrawal-crypto-queue';
const resume = '/admin/withdrawals/{id}/resume';
const cancel = '/admin/withdrawals/{id}/cancel';

export const columns: Column<Withdrawal>[] = [
  {
    key: 'fullName',
    title: 'money.customer',
    person: true,
    show: (w) => <Named name={w.fullName} contact={w.email ?? w.phoneNumber} />,
    text: (w) => w.fullName ?? w.email ?? w.phoneNumber ?? w.userId,
  },
  {
    key: 'amount',
    title: 'money.amount',
    card: 'top',
    end: true,
    show: (w) => <Money amount={w.amount} unit={w.code} />,
  },
  // The fee is in the currency of the amount.
  { key: 'fee', title: 'money.fee', card: 'none', end: true, show: (w) => <Money amount={w.fee} /> },
  { key: 'createdAt', title: 'money.age', card: 'end', show: (w) => <Ago at={w.createdAt} /> },
  {
    key: 'transactionDescription',
    title: 'money.status',
    card: 'start',
    show: (w) => <Status of={w.transactionDescription} />,
  },
  { key: 'code', title: 'money.currency', show: (w) => <Coded of={w.code} />, hidden: true },
  { key: 'network', title: 'money.network', show: (w) => <bdi dir="ltr">{w.network}</bdi> },
  { key: 'address', title: 'money.address', show: (w) => <Id of={w.address} short /> },
  { key: 'hold', title: 'money.hold', show: (w) => w.hold && <Held of={w} />, text: (w) => w.hold?.reason },
  { key: 'reason', title: 'money.lastReason', hidden: true },
  { key: 'id', title: 'money.withdrawal', show: (w) => <Id of={w.id} short />, hidden: true },
  { key: 'userId', title: 'money.user', show: (w) => <Person id={w.userId} />, hidden: true },
  { key: 'explorerUrl', title: 'money.explorer', show: (w) => <Explorer url={w.explorerUrl} />, hidden: true },
];

/** Why a withdrawal is held back from the wallet, and since when. */
const Held = ({ of }: { of: Withdrawal }) => (
  <>
    <Because of={of} /> <Ago at={of.hold?.since} />
  </>
);

/** The statuses with their filter numbers. The statuses of 6 and 7 can be configured (D-TX-02). */
const states: Record<string, string> = {
  '8': 'queued',
  '9': 'processing',
  '10': 'sent',
  '6': 'hotWalletInsufficientBalance',
  '7': 'timeOut',
  '5': 'waitingApproval',
  '4': 'success',
  '11': 'failed',
  '12': 'cancelled',
};

const filters = (t: TFunction): FilterOf<typeof path>[] => [
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
    kind: Object.entries(states).map(([value, state]) => ({
      value,
      label: t(`state.${state}`, { defaultValue: state }),
    })),
  },
  { name: 'startDate', title: 'list.from', kind: 'date' },
  { name: 'endDate', title: 'list.to', kind: 'date' },
];

/** The statuses from which an operator may move a withdrawal (docs/neighbours.md). */
const waiting = 'waitingApproval';
const undecided = ['hotWalletInsufficientBalance', 'timeOut'];
const resumable = [...undecided, waiting];
const cancellable = [...resumable, 'queued'];

export default function Withdrawals() {
  const { t } = useTranslation();
  const [open, setOpen] = useState<Withdrawal>();
  return (
    <Stack>
      <List
        path={path}
        title="money.withdrawals"
        columns={columns}
        empty="money.noWithdrawals"
        filters={filters(t)}
        id={(w) => w.id}
        open={setOpen}
        bulk={(rows, clear) => <Decisions rows={rows} onDone={clear} />}
      />
      <Whole of={open} title="money.withdrawal" onClose={() => setOpen(undefined)}>
        {open && <Case of={open} onDone={() => setOpen(undefined)} />}
      </Whole>
    </Stack>
  );
}

/** A withdrawal in a drawer: the hold, the decisions, the rules that decided, and the account. */
export function Case({ of, onDone }: { of: Withdrawal; onDone: () => void }) {
  return (
    <>
      <Line of={of} />
      {of.transactionDescription === waiting && <HeldCase of={of} />}
      <Group gap="xs" className="decide">
        <Decisions rows={[of]} onDone={onDone} />
      </Group>
      {of.hold?.reason === 'POLICY' && <Explained id={of.id} />}
      <Owner userId={of.userId} />
      <Standing of={[{ userId: of.userId, code: of.code }]} title="money.now" />
    </>
  );
}

/** Each decision applies to the rows that allow it; the others are left out. */
export function Decisions({ rows, onDone }: { rows: Withdrawal[]; onDone: () => void }) {
  const { t } = useTranslation();
  const [reason, setReason] = useState('');
  const from = (states: string[]) => rows.filter((w) => states.includes(w.transactionDescription));
  const resumed = from(resumable).filter(releasable);
  const approves = resumed.length > 0 && resumed.every((w) => w.hold?.approvals.length);
  const common = (lead: TextKey, needed: boolean, of: Withdrawal[]) => ({
    method: 'post' as const,
    touches: [path, sums],
    onDone,
    name: (w: Withdrawal) => <Line of={w} />,
    ready: !needed || reason.trim() !== '',
    children: (
      <>
        <Text size="sm">{t(lead)}</Text>
        {rows.length > 1 && <AtStake of={of} />}
        <Textarea
          label={t('money.reason')}
          required={needed}
          autosize
          minRows={2}
          maxLength={500}
          value={reason}
          data-testid="field-reason"
          onChange={(event) => setReason(event.currentTarget.value)}
        />
      </>
    ),
  });
  const said = reason.trim() ? { reason } : {};
  if (from(cancellable).length === 0)
    return (
      <Text size="sm" c="dimmed" data-testid="undecidable">
        {t('money.undecidable', { count: rows.length })}
      </Text>
    );
  return (
    <>
      {resumed.length > 0 && (
        <Bulk
          {...common(approves ? 'hold.approveLead' : 'money.resumeLead', false, resumed)}
          path={resume}
          title={approves ? 'hold.approve' : 'money.resume'}
          go={approves ? 'hold.approveGo' : 'money.resumeGo'}
          rows={resumed}
          places={(w) => ({ id: w.id })}
          body={() => said}
        />
      )}
      <Bulk
        {...common('money.cancelLead', true, from(cancellable))}
        path={cancel}
        title="money.cancelIt"
        go="money.cancelGo"
        rows={from(cancellable)}
        places={(w) => ({ id: w.id })}
        body={() => said}
        button={{ color: 'red', variant: 'light' }}
      />
      {from(undecided).length > 0 && (
        <>
          <Bulk
            {...common('money.sentLead', true, from(undecided))}
            path={decide}
            title="money.sent"
            go="money.sentGo"
            rows={from(undecided)}
            body={(w) => ({ withdrawalId: w.id, status: 4, currencyCode: w.code, reason })}
          />
          <Bulk
            {...common('money.toApprovalLead', true, from(undecided))}
            path={decide}
            title="money.toApproval"
            go="money.toApprovalGo"
            rows={from(undecided)}
            body={(w) => ({ withdrawalId: w.id, status: 5, reason })}
          />
        </>
      )}
    </>
  );
}

export function Line({ of }: { of: Withdrawal }) {
  const { t } = useTranslation();
  return (
    <Group gap="md" data-testid="line">
      <Named name={of.fullName} contact={of.email ?? of.phoneNumber} />
      <div>
        <Money amount={of.amount} unit={of.code} />
        <Text size="xs" c="dimmed">
          {t('money.fee')} <Money amount={of.fee} unit={of.code} />
        </Text>
      </div>
      <Text size="xs" component="div">
        <bdi dir="ltr">{of.network}</bdi> <Id of={of.address} short />
      </Text>
      <Status of={of.transactionDescription} />
      <Ago at={of.createdAt} />
    </Group>
  );
}
