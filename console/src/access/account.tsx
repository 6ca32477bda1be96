/** The user's own account: level and limits, balances, pending transactions. */
import { Stack, Title } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { Problem } from '../app/problem';
import { useMay } from '../app/session';
import { List, type Column, type Row } from '../kit/list';
import { useRead } from '../kit/read';
import { Fact, Facts } from '../kit/record';
import { Id, Money, Status } from '../kit/show';
import { levelName } from '../kit/word';

const assets = '/user/asset';
const waiting = '/user/get-waiting-info-transactions';

const assetColumns: Column<Row<typeof assets>>[] = [
  { key: 'currencyName', title: 'own.currency' },
  { key: 'networkCode', title: 'own.network', show: (a) => <bdi dir="ltr">{a.networkCode}</bdi> },
  { key: 'balance', title: 'own.balance', end: true, show: (a) => <Money amount={a.balance} unit={a.currencyCode} /> },
  { key: 'locked', title: 'own.locked', end: true, show: (a) => <Money amount={a.locked} unit={a.currencyCode} /> },
  {
    key: 'available',
    title: 'own.available',
    end: true,
    show: (a) => <Money amount={a.available} unit={a.currencyCode} />,
  },
];

const waitingColumns: Column<Row<typeof waiting>>[] = [
  { key: 'transactionId', title: 'own.transaction', show: (w) => <Id of={w.transactionId} short /> },
  { key: 'value', title: 'own.amount', end: true, show: (w) => <Money amount={w.value} unit={w.currencyCode} /> },
  { key: 'toAddress', title: 'own.address', show: (w) => <Id of={w.toAddress} short /> },
  { key: 'txId', title: 'own.hash', show: (w) => <Id of={w.txId} short /> },
  { key: 'status', title: 'own.status', show: (w) => <Status of={`tx${w.status}`} /> },
];

export default function Account() {
  const { t } = useTranslation();
  const may = useMay();
  const profile = useRead('/user/user-profile');
  return (
    <Stack gap="xl">
      <Title order={1} size="h3">
        {t('own.account')}
      </Title>
      <Problem of={profile.error} />
      <Facts>
        <Fact title="own.prohibited">
          <Status of={profile.data?.isWithdrawProhibited} />
        </Fact>
        <Fact title="own.totp">
          <Status of={profile.data?.totp} />
        </Fact>
      </Facts>
      {may('GET /user/limit-info') && <Limits />}
      {may(`GET ${assets}`) && (
        <List
          path={assets}
          title="own.balances"
          inside
          columns={assetColumns}
          size={undefined}
          id={(a) => `${a.currencyCode} ${a.networkCode}`}
        />
      )}
      {may(`GET ${waiting}`) && (
        <List path={waiting} title="own.waiting" inside columns={waitingColumns} id={(w) => w.transactionId} />
      )}
    </Stack>
  );
}

function Limits() {
  const { t } = useTranslation();
  const limits = useRead('/user/limit-info');
  const l = limits.data;
  return (
    <>
      <Problem of={limits.error} />
      {l && (
        <Facts>
          <Fact title="own.level">{levelName(l.levelLabel, t)}</Fact>
          <Fact title="own.creditDaily">
            <Money amount={l.creditRemainingDaily} unit="TRY" />
          </Fact>
          <Fact title="own.creditMonthly">
            <Money amount={l.creditRemainingMonthly} unit="TRY" />
          </Fact>
          <Fact title="own.debitDaily">
            <Money amount={l.debitRemainingDaily} unit="TRY" />
          </Fact>
          <Fact title="own.debitMonthly">
            <Money amount={l.debitRemainingMonthly} unit="TRY" />
          </Fact>
        </Facts>
      )}
    </>
  );
}
