/** Withdrawals that are held back from the wallet, the oldest first: why, since when, what is missing, until when. */
import { Stack } from '@mantine/core';
import { useState } from 'react';
import { List, type Column } from '../kit/list';
import { Whole } from '../kit/record';
import { Ago, Id, Nothing } from '../kit/show';
import { Because, Missing, type Withdrawal } from './hold';
import { Case, columns as queued, Decisions, queuePath } from './withdrawals';

const columns: Column<Withdrawal>[] = [
  ...queued.filter(({ key }) => key === 'fullName' || key === 'amount'),
  { key: 'createdAt', title: 'money.age', card: 'end', show: (w) => <Ago at={w.hold?.since ?? w.createdAt} /> },
  { key: 'hold', title: 'money.hold', card: 'start', show: (w) => <Because of={w} />, text: (w) => w.hold?.reason },
  { key: 'status' as 'hold', title: 'hold.missing', show: (w) => <Missing of={w} />, text: () => '' },
  {
    key: 'until' as 'hold',
    title: 'hold.until',
    show: (w) => (w.hold?.until ? <Ago at={w.hold.until} /> : <Nothing />),
    text: (w) => w.hold?.until,
  },
  { key: 'address', title: 'money.address', show: (w) => <Id of={w.address} short />, hidden: true },
  { key: 'id', title: 'money.withdrawal', show: (w) => <Id of={w.id} short />, hidden: true },
];

export default function Held() {
  const [open, setOpen] = useState<Withdrawal>();
  const close = () => setOpen(undefined);
  return (
    <Stack>
      <List
        path={queuePath}
        title="hold.title"
        columns={columns}
        empty="hold.none"
        fixed={{ statusCode: 5, order: 'oldest' }}
        filters={[
          { name: 'fullName', title: 'users.fullName' },
          { name: 'code', title: 'money.currency' },
          { name: 'address', title: 'money.address' },
        ]}
        id={(w) => w.id}
        open={setOpen}
        bulk={(rows, clear) => <Decisions rows={rows} onDone={clear} />}
      />
      <Whole of={open} title="money.withdrawal" onClose={close}>
        {open && <Case of={open} onDone={close} />}
      </Whole>
    </Stack>
  );
}
