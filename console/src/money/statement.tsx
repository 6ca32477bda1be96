/** The statement of a user: the transactions by network, newest first. */
import { Anchor } from '@mantine/core';
import { useEffect } from 'react';
import { useAddress } from '../app/address';
import { List, type Column, type FilterOf, type Row } from '../kit/list';
import { Id, Money, Nothing, Status, Time } from '../kit/show';
import { madeAt, Owner } from './parts';

const path = '/process/get-process-admin';

export const statementColumns: Column<Row<typeof path>>[] = [
  {
    key: 'at' as 'transactionId',
    title: 'money.at',
    show: (p) => <Time at={madeAt(p.transactionId)} />,
    text: (p) => new Date(madeAt(p.transactionId)).toISOString(),
  },
  {
    key: 'amount',
    title: 'money.amount',
    card: 'top',
    end: true,
    show: (p) => (p.amount === null ? <Nothing /> : <Money amount={p.amount} unit={p.currencyCode} />),
  },
  { key: 'transactionId', title: 'money.transaction', show: (p) => <Id of={p.transactionId} short /> },
  { key: 'networkCode', title: 'money.network' },
  { key: 'txId', title: 'money.txId', show: (p) => <Id of={p.txId} short /> },
  {
    key: 'internalTransaction',
    title: 'money.internal',
    show: (p) => <Status of={p.internalTransaction} />,
    hidden: true,
  },
  { key: 'explorerUrl', title: 'money.explorer', show: (p) => <Explorer url={p.explorerUrl} /> },
];

const filters: FilterOf<typeof path>[] = [
  { name: 'userId', title: 'money.user' },
  { name: 'code', title: 'money.currency' },
  { name: 'startDate', title: 'list.from', kind: 'date' },
  { name: 'endDate', title: 'list.to', kind: 'date' },
  { name: 'type', title: 'users.type', kind: ['bireysel', 'kurumsal'] },
];

export default function Statement() {
  const [{ userId = '' }] = useAddress();
  useFocus('userId', !userId);
  return (
    <List
      path={path}
      title="money.statement"
      columns={statementColumns}
      filters={filters}
      needs={['userId']}
      next={{ title: 'money.findCustomer', to: '/users', needs: 'GET /admin/list-users' }}
      empty="money.noTransactions"
      above={<Owner userId={userId} here="/statement" />}
      id={() => ''}
    />
  );
}

/** Focuses a filter that the list needs, when the screen opens without it. */
export function useFocus(filter: string, missing: boolean) {
  useEffect(() => {
    if (missing) document.querySelector<HTMLElement>(`[data-testid="filter-${filter}"]`)?.focus();
  }, [filter, missing]);
}

/** A link to another site: it opens only on click, without a referrer. */
export function Explorer({ url }: { url: string }) {
  if (!/^https?:\/\//.test(url)) return <Nothing />;
  return (
    <Anchor href={url} target="_blank" rel="noopener noreferrer" dir="ltr" onClick={(event) => event.stopPropagation()}>
      {new URL(url).hostname}
    </Anchor>
  );
}
