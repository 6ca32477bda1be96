/** Currencies, networks and the links between them; and the public view of a customer's client. */
import { Alert, Group, Loader, Stack, Title } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { useQuery } from '@tanstack/react-query';
import { read } from '../app/api';
import { Problem } from '../app/problem';
import { Administered } from '../kit/administered';
import { List, type Column, type FilterOf, type Row } from '../kit/list';
import { Fact, Facts } from '../kit/record';
import { Id, Money, Status } from '../kit/show';
import { Activate, Change, Setup, type Currency, type Link, type Network } from './assets';
import { Sheets } from '../kit/sheets';

const path = '/admin/currency/get-all';
const published = '/get-all-currency-network';
type Any = Row<typeof path>;

const code = (text: string) => <bdi dir="ltr">{text}</bdi>;
const ways: Column<Currency & Link>[] = [
  { key: 'depositEnable', title: 'currency.deposit', show: (c) => <Status of={c.depositEnable} /> },
  { key: 'withdrawEnable', title: 'currency.withdraw', show: (c) => <Status of={c.withdrawEnable} /> },
  { key: 'isActive', title: 'currency.active', show: (c) => <Status of={c.isActive} /> },
];

const ofCurrency: Column<Currency>[] = [
  { key: 'code', title: 'currency.code', show: (c) => code(c.code) },
  { key: 'name', title: 'currency.name' },
  { key: 'network', title: 'currency.network', show: (c) => code(c.network) },
  {
    key: 'threshold',
    title: 'currency.threshold',
    end: true,
    show: (c) => <Money amount={c.threshold} />,
  },
  ...(ways as unknown as Column<Currency>[]),
];

const ofNetwork: Column<Network>[] = [
  { key: 'networkCode', title: 'currency.code', show: (n) => code(n.networkCode) },
  { key: 'networkName', title: 'currency.name' },
  { key: 'kytNetworkName', title: 'currency.kyt' },
  { key: 'isActive', title: 'currency.active', show: (n) => <Status of={n.isActive} /> },
];

const ofLink: Column<Link>[] = [
  { key: 'currencyCode', title: 'currency.currency', show: (l) => code(l.currencyCode) },
  { key: 'networkCode', title: 'currency.network', show: (l) => code(l.networkCode) },
  { key: 'formatPrecision', title: 'currency.precision', show: (l) => code(l.formatPrecision) },
  { key: 'screeningSymbol', title: 'currency.screening', show: (l) => code(l.screeningSymbol), hidden: true },
  { key: 'mintAddress', title: 'currency.mint', show: (l) => <Id of={l.mintAddress} short />, hidden: true },
  {
    key: 'depositAddressAvailable',
    title: 'currency.addresses',
    show: (l) => <Status of={l.depositAddressAvailable} />,
  },
  ...(ways as unknown as Column<Link>[]),
];

const seen: Column<Row<typeof published>>[] = [
  { key: 'currencyCode', title: 'currency.currency', show: (l) => code(l.currencyCode) },
  { key: 'currencyName', title: 'currency.name' },
  { key: 'networkCode', title: 'currency.network', show: (l) => code(l.networkCode) },
  { key: 'networkName', title: 'currency.networkName' },
  { key: 'decimals', title: 'currency.decimals' },
  { key: 'depositEnable', title: 'currency.deposit', show: (c) => <Status of={c.depositEnable} /> },
  { key: 'withdrawEnable', title: 'currency.withdraw', show: (c) => <Status of={c.withdrawEnable} /> },
  { key: 'isActive', title: 'currency.active', show: (c) => <Status of={c.isActive} /> },
];

const bySymbol: FilterOf<typeof path>[] = [
  { name: 'symbol', title: 'currency.code' },
  { name: 'isActive', title: 'currency.active', kind: 'flag' },
];

export default function Currencies() {
  const admin =
    (type: 'CURRENCY' | 'CURRENCY_NETWORK' | 'CURRENCY_OF_NETWORK', columns: unknown, filters: typeof bySymbol = []) =>
    () => <Records key={type} type={type} columns={columns as Column<Any>[]} filters={filters} />;
  return (
    <Sheets
      label="currency.title"
      sheets={[
        {
          name: 'currencies',
          title: 'currency.title',
          needs: `GET ${path}`,
          show: admin('CURRENCY', ofCurrency, bySymbol),
        },
        {
          name: 'networks',
          title: 'currency.networks',
          needs: `GET ${path}`,
          show: admin('CURRENCY_NETWORK', ofNetwork, [{ name: 'networkCode', title: 'currency.code' }]),
        },
        { name: 'links', title: 'currency.links', needs: `GET ${path}`, show: admin('CURRENCY_OF_NETWORK', ofLink) },
        {
          name: 'published',
          title: 'currency.published',
          needs: `GET ${published}`,
          show: () => (
            <List
              path={published}
              title="currency.published"
              columns={seen}
              size={undefined}
              id={(l) => String(l.id)}
              filters={[{ name: 'currencyOfNetworkIsActive', title: 'currency.active', kind: 'flag' }]}
            />
          ),
        },
      ]}
    />
  );
}

function Records({
  type,
  columns,
  filters,
}: {
  type: 'CURRENCY' | 'CURRENCY_NETWORK' | 'CURRENCY_OF_NETWORK';
  columns: Column<Any>[];
  filters: typeof bySymbol;
}) {
  const titles = {
    CURRENCY: 'currency.title',
    CURRENCY_NETWORK: 'currency.networks',
    CURRENCY_OF_NETWORK: 'currency.links',
  } as const;
  return (
    <Administered
      path={path}
      title={titles[type]}
      columns={columns}
      filters={filters}
      fixed={{ type }}
      id={(c) => String(c.id)}
      actions={<Setup />}
      one="currency.one"
      more={(of, close) => <Around of={of} onDone={close} />}
    />
  );
}

/** The links of a record, each with its currency and its network: a change always names all three (section 4.7). */
function Around({ of, onDone }: { of: Any; onDone: () => void }) {
  const { t } = useTranslation();
  const all = useQuery({
    queryKey: [path, 'around'],
    queryFn: async () => {
      const of3 = (['CURRENCY', 'CURRENCY_NETWORK', 'CURRENCY_OF_NETWORK'] as const).map(
        async (type) => (await read(path, { params: { query: { type } } })).data ?? [],
      );
      const [currencies, networks, links] = await Promise.all(of3);
      return { currencies: currencies as Currency[], networks: networks as Network[], links: links as Link[] };
    },
  });
  if (!all.data) return all.error ? <Problem of={all.error} /> : <Loader size="sm" />;
  const { currencies, networks, links } = all.data;
  const mine = links.filter((l) =>
    'currencyCode' in of
      ? l.id === of.id
      : 'code' in of
        ? l.currencyCode === of.code
        : l.networkCode === of.networkCode,
  );
  if (mine.length === 0) return <Alert color="gray">{t('currency.alone')}</Alert>;
  return mine.map((link) => {
    const currency = currencies.find((c) => c.code === link.currencyCode);
    const network = networks.find((n) => n.networkCode === link.networkCode);
    if (!currency || !network) return null;
    return (
      <Stack key={link.id} gap="xs">
        <Title order={3} size="h5">
          <bdi dir="ltr">
            {link.currencyCode} / {link.networkCode}
          </bdi>
        </Title>
        <Group>
          <Change currency={currency} network={network} link={link} onDone={onDone} />
          <Activate currency={currency} link={link} onDone={onDone} />
        </Group>
        {mine.length === 1 && <Told symbol={link.currencyCode} network={link.networkCode} />}
      </Stack>
    );
  });
}

/** The public data that a client gets without a login. */
function Told({ symbol, network }: { symbol: string; network: string }) {
  const path = '/currency/get-currency-info';
  const info = useQuery({
    queryKey: [path, symbol, network],
    queryFn: async () => (await read(path, { params: { query: { symbol, network } } })).data,
  });
  if (!info.data) return <Problem of={info.error} />;
  return (
    <Facts>
      <Fact title="currency.published">{code(info.data.symbol)}</Fact>
      <Fact title="currency.name">{info.data.name}</Fact>
      <Fact title="currency.network">{code(info.data.network)}</Fact>
      <Fact title="currency.decimals">{info.data.decimals}</Fact>
    </Facts>
  );
}
