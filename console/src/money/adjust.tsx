/** Adjusts the balance of a user. The accounts are shown before the write, and the changes after it. */
import {
  Alert,
  Autocomplete,
  Button,
  Group,
  Input,
  SegmentedControl,
  Stack,
  Text,
  Textarea,
  TextInput,
  Title,
} from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useAddress } from '../app/address';
import { decisions, useAct, useApproval, WaitsUntil } from '../app/act';
import type { Schemas } from '../app/api';
import { Problem } from '../app/problem';
import { useMay } from '../app/session';
import { AmountInput } from '../kit/amountinput';
import { useDraft } from '../kit/draft';
import { Restored } from '../kit/drawer';
import { useRead } from '../kit/read';
import { Copies, Diff, Fact, Facts } from '../kit/record';
import { Id, Time } from '../kit/show';
import { decimalsOf, names, Owner, Standing, sums, usePairs } from './parts';

const path = '/admin/transaction/adjust-balance';
const previewing = '/admin/transaction/adjust-balance/preview';
const member = '/admin/get-member-asset-balances';

type Made = Schemas['BalanceAdjustment'];

/** The answer of an adjustment that a second person must approve. */
interface Sealed {
  approvalId: string;
  expiresAt: string;
}

interface Values {
  userId: string;
  currencyCode: string;
  networkCode: string;
  amount: string;
  type: 'C' | 'D';
}

export default function Adjust() {
  const { t } = useTranslation();
  const [search] = useAddress();
  const [round, setRound] = useState(0);
  return (
    <Stack maw={720}>
      <Title order={1} size="h3">
        {t('money.adjust')}
      </Title>
      <Text c="dimmed">{t('money.adjust.lead')}</Text>
      <Form key={round} userId={search.userId ?? ''} onNext={() => setRound(round + 1)} />
    </Stack>
  );
}

const none: Values = { userId: '', currencyCode: '', networkCode: '', amount: '', type: 'C' };

/** One adjustment. Its id is created once, so that the same adjustment is never posted twice (D-TX-06). */
function Form({ userId, onNext }: { userId: string; onNext: () => void }) {
  const { t } = useTranslation();
  const may = useMay();
  const act = useAct('post', path, [sums, member], 'money.adjusted');
  const [fresh] = useState(() => `console-${crypto.randomUUID()}`);
  const draft = useDraft(`adjust:${userId}`, { ...none, userId, reason: '', uniqueId: '', typed: '' });
  const { reason, uniqueId, typed, ...values } = draft.value;
  const [sent, setSent] = useState(false);
  const [made, setMade] = useState<Made>();
  const [waits, setWaits] = useState<Sealed>(); // waits for a second person
  // The draft keeps the id: after a lost answer and a reload, it is the same adjustment.
  const set = (some: Partial<typeof draft.value>) => draft.set({ uniqueId: uniqueId || fresh, ...some });
  const pairs = usePairs();
  const ofCurrency = pairs.filter((p) => p.currencyCode === values.currencyCode);
  const wrong = (name: string) => act.problem?.errors.find((e) => e.field === name)?.message;
  const field = (name: keyof Values) => ({
    name,
    error: wrong(name),
    required: true,
    disabled: !!made || !!waits,
    'data-testid': `field-${name}`,
  });
  const complete = Object.values(values).every(Boolean) && reason.trim() !== '';
  async function send() {
    setSent(true);
    const answer = (await act.run({ ...values, uniqueId: uniqueId || fresh, reason })) as
      Schemas['TransactionAdjusted'] | undefined;
    if (answer) draft.done();
    if (answer?.data && 'transactionId' in answer.data) return setMade(answer.data);
    const sealed = answer?.data as Partial<Sealed> | undefined;
    setWaits(sealed?.approvalId ? (sealed as Sealed) : undefined);
    setSent(false);
  }
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <Stack>
        {!made && !waits && <Restored of={draft} />}
        <TextInput
          {...field('userId')}
          label={t('money.user')}
          dir="ltr"
          value={values.userId}
          onChange={(event) => set({ userId: event.currentTarget.value.trim() })}
        />
        <Owner userId={values.userId} here="/adjust" />
        <Group grow align="start">
          <Autocomplete
            {...field('currencyCode')}
            label={t('money.currency')}
            data={[...new Set(pairs.map((p) => p.currencyCode))]}
            value={values.currencyCode}
            onChange={(currencyCode) => set({ currencyCode: currencyCode.trim() })}
          />
          <Autocomplete
            {...field('networkCode')}
            label={t('money.network')}
            data={ofCurrency.map((p) => p.networkCode)}
            value={values.networkCode}
            onChange={(networkCode) => set({ networkCode: networkCode.trim() })}
          />
        </Group>
        <Group grow align="start">
          <AmountInput
            key={draft.round}
            {...field('amount')}
            typed={typed || undefined}
            onTyped={(text) => set({ typed: text ?? '' })}
            label={t('money.amount')}
            value={values.amount}
            unit={values.currencyCode}
            decimals={decimalsOf(pairs, values.currencyCode, values.networkCode)}
            onChange={(amount) => set({ amount })}
          />
          <Input.Wrapper label={t('money.direction')} labelElement="div">
            <SegmentedControl
              fullWidth
              value={values.type}
              onChange={(type) => set({ type: type })}
              disabled={!!made || !!waits}
              aria-label={t('money.direction')}
              data={[
                { value: 'C', label: t('money.credit') },
                { value: 'D', label: t('money.debit') },
              ]}
            />
          </Input.Wrapper>
        </Group>
        <Textarea
          label={t('money.reason')}
          required
          autosize
          minRows={2}
          maxLength={500}
          value={reason}
          disabled={!!made || !!waits}
          error={wrong('reason')}
          data-testid="field-reason"
          onChange={(event) => set({ reason: event.currentTarget.value })}
        />
        {!made && <Preview of={values} />}
        <Standing
          of={[{ userId: values.userId, code: values.currencyCode }]}
          sent={sent}
          done={!!made}
          quiet={may(`GET ${previewing}`)}
        />
        <Problem of={act.problem} />
        {made && <Booked of={made} onNext={onNext} />}
        {waits && <Sent of={waits} onNext={onNext} />}
        {!made && !waits && (
          <Group justify="flex-end">
            <Button type="submit" loading={act.busy} disabled={!complete} data-testid="send">
              {t('money.adjust.go')}
            </Button>
          </Group>
        )}
      </Stack>
      {act.view}
    </form>
  );
}

/** Both accounts before and after the adjustment, calculated by the service. */
function Preview({ of }: { of: Values }) {
  const { t } = useTranslation();
  const may = useMay();
  const [asked] = useDebouncedValue(of, 400); // no request for each typed character
  const enabled = may(`GET ${previewing}`) && Object.values(asked).every(Boolean);
  const read = useRead(previewing, asked, { enabled });
  if (!enabled) return null;
  return (
    <Stack gap="xs" data-testid="preview">
      <Problem of={read.error} />
      {read.data && (
        <>
          <Text size="sm" fw={600}>
            {t('money.user')}
          </Text>
          <Diff {...read.data.user} names={names} all />
          <Text size="sm" fw={600}>
            {t('money.treasury')}
          </Text>
          <Diff {...read.data.treasury} names={names} all />
        </>
      )}
    </Stack>
  );
}

/** The adjustment waits for a second person. It shows the decision when it is made. */
function Sent({ of, onNext }: { of: Sealed; onNext: () => void }) {
  const { t } = useTranslation();
  const may = useMay();
  const request = useApproval(of.approvalId, may('GET /admin/approvals/{id}'));
  const status = request?.status ?? 'PENDING';
  const colour = status === 'PENDING' ? 'yellow' : status === 'APPROVED' ? 'green' : 'red';
  return (
    <Alert color={colour} data-testid="waits" data-decision={status}>
      <Stack align="start">
        {status === 'PENDING' ? (
          <WaitsUntil at={of.expiresAt} />
        ) : (
          <Text>{decisions[status] ? t(decisions[status]) : status}</Text>
        )}
        {request?.reason && (
          <Text size="sm">
            <bdi>{request.reason}</bdi>
          </Text>
        )}
        {request?.decidedBy && (
          <Group gap="xs">
            <Owner userId={request.decidedBy} bare />
            <Time at={request.decidedAt} />
          </Group>
        )}
        <Button variant="default" onClick={onNext}>
          {t('money.another')}
        </Button>
      </Stack>
    </Alert>
  );
}

function Booked({ of, onNext }: { of: Made; onNext: () => void }) {
  const { t } = useTranslation();
  return (
    <Alert color="green" title={t('money.adjusted')} data-testid="made">
      <Stack>
        <Facts>
          <Fact title="money.transaction">
            <Id of={of.transactionId} />
          </Fact>
          <Fact title="money.uniqueId">
            <Id of={of.uniqueId} short />
          </Fact>
          <Fact title="money.address">
            <Id of={of.toAddress} short />
          </Fact>
        </Facts>
        <Copies of={of} />
        <Group>
          <Button variant="default" onClick={onNext} data-testid="again">
            {t('money.another')}
          </Button>
        </Group>
      </Stack>
    </Alert>
  );
}
