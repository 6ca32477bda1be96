/** The blockages: all with user names, or those that match the filters; adding and releasing blockages. */
import { Group, Stack, Textarea } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useAddress } from '../app/address';
import type { Schemas } from '../app/api';
import { useMay } from '../app/session';
import { Bulk } from '../kit/bulk';
import { List, type Column, type FilterOf } from '../kit/list';
import { Person } from '../kit/person';
import { Whole } from '../kit/record';
import { Id, Money, Status, Time, textOf } from '../kit/show';
import { Word } from '../kit/word';
import { Write, type Input } from '../kit/write';
import { decimalsOf, Owner, Standing, sums, usePairs } from './parts';

const named = '/admin/blockage/get-all-block-histories';
const found = '/blockage/get-blockage-history';
const insert = '/blockage/insert-blockage-history';
const update = '/blockage/update-blockage-history';
const remove = '/blockage/delete-blockage-history';
const touches = [named, found, sums];

type Named = Schemas['NamedBlockage'];
type Found = Schemas['Blockage'];
type Any = Named | Found;

const amount = (b: Any) => <Money amount={b.amount} unit={b.currencyCode} />;
const status = (b: Any) => <Status of={b.status} />;
const user = (b: Any) => <Person id={b.userId} />;
const number = (b: Any) => <Id of={b.id} />;
const purpose = (b: Any) => <Word of="state.type" number={b.blockTypeId} />;
const created = (b: Any) => <Time at={b.createdAt} />;

const namedColumns: Column<Named>[] = [
  { key: 'userId', title: 'money.customer', person: true, show: user, text: (b) => b.fullName || b.userId },
  { key: 'amount', title: 'money.amount', end: true, show: amount },
  { key: 'blockTypeId', title: 'money.blockType', show: purpose },
  { key: 'status', title: 'money.status', show: status },
  { key: 'createdAt', title: 'money.at', show: created },
  { key: 'id', title: 'money.blockage', show: number, hidden: true },
];

const foundColumns: Column<Found>[] = [
  { key: 'userId', title: 'money.customer', person: true, show: user },
  { key: 'amount', title: 'money.amount', end: true, show: amount },
  { key: 'blockTypeId', title: 'money.blockType', show: purpose },
  { key: 'status', title: 'money.status', show: status },
  { key: 'description', title: 'money.reason' },
  { key: 'createdAt', title: 'money.at', show: created },
  { key: 'updatedAt', title: 'money.changedAt', show: (b) => <Time at={b.updatedAt} /> },
  { key: 'id', title: 'money.blockage', show: number, hidden: true },
];

const filters: FilterOf<typeof found>[] = [
  { name: 'userId', title: 'money.user' },
  { name: 'currencyCode', title: 'money.currency' },
  { name: 'blockTypeId', title: 'money.blockType' },
  { name: 'status', title: 'money.status', kind: ['active', 'released'] },
];

const fields = (pairs: ReturnType<typeof usePairs>): Input<Schemas['AddBlockageRequest']>[] => [
  { name: 'userId', title: 'money.user', required: true },
  { name: 'currencyCode', title: 'money.currency', required: true },
  {
    name: 'amount',
    title: 'money.amount',
    kind: 'money',
    required: true,
    bounds: ({ currencyCode }) => {
      const unit = textOf(currencyCode);
      return { unit, decimals: decimalsOf(pairs, unit) };
    },
  },
  { name: 'blockTypeId', title: 'money.blockType', kind: 'number', required: true },
  { name: 'blockSourceId', title: 'money.blockSource', kind: 'number' },
  { name: 'description', title: 'money.reason', kind: 'area', required: true },
];

/** The service lists blockages with names, or by filters. The filters that are set decide which list is read. */
export default function Blockages() {
  const may = useMay();
  const [search] = useAddress();
  const [open, setOpen] = useState<Any>();
  const pairs = usePairs(may(`POST ${insert}`));
  const filtered = ['userId', 'status', 'blockTypeId'].some((name) => search[name]);
  const shared = {
    title: 'money.blockages' as const,
    id: (b: Any) => b.id,
    open: setOpen,
    filters,
    empty: 'money.noBlockages' as const,
    next: { title: 'money.block' as const, form: 'money.block', needs: `POST ${insert}` },
    actions: (
      <Write
        method="post"
        path={insert}
        title="money.block"
        fields={fields(pairs)}
        touches={touches}
        initial={{ userId: search.userId, currencyCode: search.currencyCode }}
        before={(v) => (
          <>
            <Owner userId={textOf(v.userId)} />
            <Standing of={[{ userId: textOf(v.userId), code: textOf(v.currencyCode) }]} />
          </>
        )}
      />
    ),
    bulk: (rows: Any[], clear: () => void) => <Ends rows={rows} onDone={clear} />,
  };
  return (
    <Stack>
      {may(`GET ${named}`) && !filtered ? (
        <List
          key={named}
          {...shared}
          path={named}
          columns={namedColumns}
          filters={filters as FilterOf<typeof named>[]}
        />
      ) : (
        <List
          key={found}
          {...shared}
          path={found}
          columns={foundColumns}
          above={<Owner userId={search.userId ?? ''} here="/blockages" />}
        />
      )}
      <Whole of={open} title="money.blockage" onClose={() => setOpen(undefined)}>
        {open && <Owner userId={open.userId} />}
        {open && <Standing of={[{ userId: open.userId, code: open.currencyCode }]} title="money.now" />}
        {open && <Turn of={open} onDone={() => setOpen(undefined)} />}
      </Whole>
    </Stack>
  );
}

/** Releases an active blockage, or activates it again. The comment gives the reason. */
function Turn({ of, onDone }: { of: Any; onDone: () => void }) {
  const active = of.status === 'active';
  return (
    <Group>
      <Write
        method="post"
        path={update}
        title={active ? 'money.release' : 'money.activate'}
        touches={touches}
        onDone={onDone}
        fixed={{ id: of.id, status: active ? 'released' : 'active' }}
        fields={[{ name: 'comment', title: 'money.reason', kind: 'area', required: true }]}
        before={() => <Standing of={[{ userId: of.userId, code: of.currencyCode }]} />}
      />
    </Group>
  );
}

function Ends({ rows, onDone }: { rows: Any[]; onDone: () => void }) {
  const { t } = useTranslation();
  const [comment, setComment] = useState('');
  const common = { method: 'post', rows, touches, onDone, name: (b: Any) => <Line of={b} /> } as const;
  const active = rows.filter((b) => b.status === 'active');
  return (
    <Group gap="xs">
      {active.length > 0 && (
        <Bulk
          {...common}
          rows={active}
          path={update}
          title="money.release"
          ready={comment.trim() !== ''}
          body={(b) => ({ id: b.id, status: 'released' as const, comment })}
        >
          <Textarea
            label={t('money.reason')}
            required
            autosize
            minRows={2}
            maxLength={500}
            value={comment}
            onChange={(event) => setComment(event.currentTarget.value)}
            data-testid="field-comment"
          />
        </Bulk>
      )}
      <Bulk {...common} path={remove} title="money.delete" body={(b) => ({ id: b.id })} button={{ color: 'red' }} />
    </Group>
  );
}

function Line({ of }: { of: Any }) {
  return (
    <Group gap="xs">
      {user(of)}
      {amount(of)}
      {status(of)}
    </Group>
  );
}
