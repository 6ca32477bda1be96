/** The queue of withdrawals: customer, amount, age, and the decisions. */
import type { TFunction } from 'i18next';
import { Group, Stack, Text, Textarea } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { Bulk } from '../kit/bulk';
import { List, type Column, type FilterOf, type Row } from '../kit/list';
import { Named, Person } from '../kit/person';
import { Whole } from '../kit/record';
import { Ago, Coded, Id, Money, Status } from '../kit/show';
import { Owner, Standing, sums } from './parts';
import { Explorer } from './statement';
import type { TextKey } from '../text/key';

const path = '/admin/get-withdrawal-crypto-queue';
const decide = '/admin/update-wallet-withdrawal-crypto-queue';
const resume = '/admin/withdrawals/{id}/resume';
const cancel = '/admin/withdrawals/{id}/cancel';
type Withdrawal = Row<typeof path>;

const columns: Column<Withdrawal>[] = [
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
  { key: 'hold', title: 'money.hold', show: (w) => w.hold && <Held of={w.hold} /> },
  { key: 'reason', title: 'money.lastReason', hidden: true },
  { key: 'id', title: 'money.withdrawal', show: (w) => <Id of={w.id} short />, hidden: true },
  { key: 'userId', title: 'money.user', show: (w) => <Person id={w.userId} />, hidden: true },
  { key: 'explorerUrl', title: 'money.explorer', show: (w) => <Explorer url={w.explorerUrl} />, hidden: true },
];

/** Why a withdrawal is held back from the wallet, and since when. */
function Held({ of }: { of: NonNullable<Withdrawal['hold']> }) {
  const { t } = useTranslation();
  return (
    <>
      {t(`hold.${of.reason}`)} <Ago at={of.since} />
    </>
  );
}

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
const undecided = ['hotWalletInsufficientBalance', 'timeOut'];
const resumable = [...undecided, 'waitingApproval'];
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
        {open && (
          <>
            <Line of={open} />
            <Group gap="xs" className="decide">
              <Decisions rows={[open]} onDone={() => setOpen(undefined)} />
            </Group>
            <Owner userId={open.userId} />
            <Standing of={[{ userId: open.userId, code: open.code }]} title="money.now" />
          </>
        )}
      </Whole>
    </Stack>
  );
}

/** Each decision applies to the rows that allow it; the others are left out. */
function Decisions({ rows, onDone }: { rows: Withdrawal[]; onDone: () => void }) {
  const { t } = useTranslation();
  const [reason, setReason] = useState('');
  const from = (states: string[]) => rows.filter((w) => states.includes(w.transactionDescription));
  const common = (lead: TextKey, needed: boolean) => ({
    method: 'post' as const,
    touches: [path, sums],
    onDone,
    name: (w: Withdrawal) => <Line of={w} />,
    ready: !needed || reason.trim() !== '',
    children: (
      <>
        <Text size="sm">{t(lead)}</Text>
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
      {from(resumable).length > 0 && (
        <Bulk
          {...common('money.resumeLead', false)}
          path={resume}
          title="money.resume"
          go="money.resumeGo"
          rows={from(resumable)}
          places={(w) => ({ id: w.id })}
          body={() => said}
        />
      )}
      <Bulk
        {...common('money.cancelLead', true)}
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
            {...common('money.sentLead', true)}
            path={decide}
            title="money.sent"
            go="money.sentGo"
            rows={from(undecided)}
            body={(w) => ({ withdrawalId: w.id, status: 4, currencyCode: w.code, reason })}
          />
          <Bulk
            {...common('money.toApprovalLead', true)}
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

function Line({ of }: { of: Withdrawal }) {
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
