/** The deposits that wait for the treasury: their senders, and the decision about the selected ones. */
import { Alert, Button, Group, Modal, Radio, Stack, Table, Textarea } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useAct } from '../app/act';
import type { Schemas } from '../app/api';
import { Problem } from '../app/problem';
import { useMay } from '../app/session';
import { JobBar } from '../kit/job';
import { List, type Column, type FilterOf, type Row } from '../kit/list';
import { Person } from '../kit/person';
import { Whole } from '../kit/record';
import { Id, Money, Nothing, plain, Status, Time } from '../kit/show';
import { madeAt, Owner, Standing, sums } from './parts';

const path = '/admin/get-waiting-info-transactions';
const decide = '/admin/update-status-transaction';
type Decision = 'finalizedDeposit' | 'waitingSenderInfo';
type Deposit = Row<typeof path>;

const columns: Column<Deposit>[] = [
  { key: 'userId', title: 'money.customer', person: true, show: (d) => <Person id={d.userId} /> },
  {
    key: 'value',
    title: 'money.amount',
    card: 'top',
    end: true,
    show: (d) => <Money amount={d.value} unit={d.currencyCode} />,
  },
  { key: 'senderInfo', title: 'money.sender', card: 'start', show: (d) => <Sender of={d.senderInfo} /> },
  {
    key: 'at' as 'transactionId',
    title: 'money.since',
    card: 'end',
    show: (d) => <Time at={madeAt(d.transactionId)} />,
    text: (d) => new Date(madeAt(d.transactionId)).toISOString(),
  },
  { key: 'transactionId', title: 'money.transaction', show: (d) => <Id of={d.transactionId} short />, hidden: true },
  {
    key: 'status',
    title: 'money.status',
    show: (d) => <Status of={`tx${d.status}`} />,
    hidden: true,
  }, // all of them are pending
];

const filters: FilterOf<typeof path>[] = [
  { name: 'userId', title: 'money.user' },
  { name: 'txId', title: 'money.txId' },
  { name: 'toAddress', title: 'money.address' },
];

/** The name of the sender, if any; the record shows all details. */
function Sender({ of }: { of: Deposit['senderInfo'] }) {
  if (!of) return <Nothing />;
  const { name } = of as { name?: unknown };
  return plain(name ?? of);
}

export default function Transactions() {
  const { t } = useTranslation();
  const may = useMay();
  const [open, setOpen] = useState<Deposit>();
  const [deciding, setDeciding] = useState<{ rows: Deposit[]; clear: () => void }>();
  const [job, setJob] = useState('');
  const close = () => {
    deciding?.clear();
    setDeciding(undefined);
  };
  return (
    <Stack>
      {job && <JobBar id={job} />}
      <List
        path={path}
        title="money.transactions"
        columns={columns}
        empty="money.noDeposits"
        filters={filters}
        id={(d) => d.transactionId}
        open={setOpen}
        bulk={
          may(`POST ${decide}`)
            ? (rows, clear) => (
                <Button size="xs" onClick={() => setDeciding({ rows, clear })} data-testid="decide">
                  {t('money.decide')}
                </Button>
              )
            : undefined
        }
      />
      <Whole of={open} title="money.transaction" onClose={() => setOpen(undefined)}>
        {open && (
          <>
            {may(`POST ${decide}`) && (
              <Group className="decide">
                <Button
                  size="xs"
                  onClick={() => {
                    setOpen(undefined);
                    setDeciding({ rows: [open], clear: () => undefined });
                  }}
                >
                  {t('money.decide')}
                </Button>
              </Group>
            )}
            <Owner userId={open.userId} />
            <Standing of={[{ userId: open.userId, code: open.currencyCode }]} title="money.now" />
          </>
        )}
      </Whole>
      <Modal opened={!!deciding} onClose={close} title={t('money.decide')} size="lg">
        {deciding && <Decide rows={deciding.rows} onJob={setJob} onClose={close} />}
      </Modal>
    </Stack>
  );
}

/** Above this number, accounts are not read one by one: the list and the job show the result. */
const few = 5;

/**
 * The rows are the selected ones: the list no longer has them after the decision. The service decides on no deposit
 * without a sender (D-TX-04).
 */
function Decide({
  rows: chosen,
  onJob,
  onClose,
}: {
  rows: Deposit[];
  onJob: (id: string) => void;
  onClose: () => void;
}) {
  const { t } = useTranslation();
  const act = useAct('post', decide, [path, sums]);
  const [status, setStatus] = useState<Decision>('finalizedDeposit');
  const [reason, setReason] = useState('');
  const [sent, setSent] = useState(false);
  const [done, setDone] = useState(false);
  const rows = chosen.filter((d) => d.senderInfo);
  const holdings = rows.map(({ userId, currencyCode }) => ({ userId, code: currencyCode }));
  async function send() {
    setSent(true);
    const answer = await act.run({ transactionIds: rows.map((d) => d.transactionId), status, reason });
    if (answer === undefined) return setSent(false);
    const { data } = answer as Schemas['UpdatedTransactions'];
    if (data && !Array.isArray(data) && 'id' in data) onJob(data.id);
    setDone(true);
  }
  return (
    <Stack>
      {rows.length < chosen.length && (
        <Alert color="yellow" data-testid="nobody">
          {t('money.noSender', { count: chosen.length - rows.length })}
        </Alert>
      )}
      <Table.ScrollContainer minWidth={300}>
        <Table>
          <Table.Tbody>
            {rows.map((d) => (
              <Table.Tr key={d.transactionId}>
                <Table.Td>
                  <Id of={d.transactionId} short />
                </Table.Td>
                <Table.Td>
                  <Person id={d.userId} />
                </Table.Td>
                <Table.Td>
                  <Money amount={d.value} unit={d.currencyCode} />
                </Table.Td>
                <Table.Td>
                  <Sender of={d.senderInfo} />
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
      {new Set(rows.map((d) => `${d.userId} ${d.currencyCode}`)).size <= few && (
        <Standing of={holdings} sent={sent} done={done} />
      )}
      {!done && (
        <Radio.Group value={status} onChange={(next) => setStatus(next)} label={t('money.becomes')}>
          <Stack gap="xs" mt="xs">
            <Radio value="finalizedDeposit" label={t('money.finalizedDeposit')} />
            <Radio value="waitingSenderInfo" label={t('money.waitingSenderInfo')} />
          </Stack>
        </Radio.Group>
      )}
      {!done && (
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
      )}
      <Problem of={act.problem} />
      {done ? (
        <Button variant="default" onClick={onClose} data-testid="close">
          {t('money.close')}
        </Button>
      ) : (
        <Button
          loading={act.busy}
          disabled={reason.trim() === '' || rows.length === 0}
          onClick={() => void send()}
          data-testid="send"
        >
          {t(`money.${status}`)} ({rows.length})
        </Button>
      )}
      {act.view}
    </Stack>
  );
}
