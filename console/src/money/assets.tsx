/** The writes of currencies: a currency, a network and their link are added, changed and activated together. */
import type { Schemas } from '../app/api';
import { Diff } from '../kit/record';
import { Write, type Input } from '../kit/write';
import type { TextKey } from '../text/key';

export type Currency = Schemas['CurrencyRecord'];
export type Network = Schemas['CurrencyNetworkRecord'];
export type Link = Schemas['CurrencyOfNetworkRecord'];

const setup = '/admin/assets/setup';
const update = '/admin/assets/setup-update';
const activate = '/admin/currency-activate';
const touches = ['/admin/currency/get-all', '/get-all-currency-network', '/currency/get-currency-info'];

type SetUp = Schemas['SetUpAssetsRequest'];
type Part = keyof SetUp;
/** The values of the form: the fields of the three sections side by side. */
type Values = { [N in `${Part}.${string}`]?: unknown };
type Kind = 'flag' | 'money' | 'number';

/** The fields of each section, in the form of the request. A field that the service expects as text has no kind. */
const parts: { [P in Part]: [name: keyof SetUp[P] & string, title: TextKey, kind?: Kind, optional?: true][] } = {
  currency: [
    ['code', 'currency.code'],
    ['name', 'currency.name'],
    ['network', 'currency.network'],
    ['image', 'currency.image'],
    ['pngimage', 'currency.png'],
    ['formatassetprice', 'currency.price', 'money'],
    ['formatorderquantity', 'currency.quantity', 'money'],
    ['threshold', 'currency.threshold', 'money'],
    ['marketdataid', 'currency.market'],
    ['marketlistingslug', 'currency.slug'],
    ['depositEnable', 'currency.deposit', 'flag'],
    ['withdrawEnable', 'currency.withdraw', 'flag'],
  ],
  currencyNetwork: [
    ['networkCode', 'currency.networkCode'],
    ['networkName', 'currency.networkName'],
    ['kytNetworkName', 'currency.kyt'],
  ],
  currencyOfNetwork: [
    ['currencyCode', 'currency.linkCurrency'],
    ['networkCode', 'currency.linkNetwork'],
    ['screeningSymbol', 'currency.screening'],
    ['formatPrecision', 'currency.precision'],
    ['mintAddress', 'currency.mint', undefined, true],
    ['maxDeposit', 'currency.maxDeposit', 'money', true],
    ['walletProviderId', 'currency.provider', 'number'],
    ['walletCurrencyId', 'currency.walletCurrency', 'number'],
    ['networkId', 'currency.walletNetwork', 'number'],
    ['depositAddressAvailable', 'currency.addresses', 'flag'],
    ['depositEnable', 'currency.linkDeposit', 'flag'],
    ['withdrawEnable', 'currency.linkWithdraw', 'flag'],
  ],
};

/** Keys of the names of the changed fields. */
const names: Record<string, TextKey> = {
  currency: 'currency.currencyActive',
  currencyOfNetwork: 'currency.linkActive',
  ...Object.fromEntries(
    Object.entries(parts).flatMap(([part, all]) => all.map(([name, title]) => [`${part}.${name}`, title])),
  ),
};

const switches: Record<Part, TextKey> = {
  currency: 'currency.withCurrency',
  currencyNetwork: 'currency.withNetwork',
  currencyOfNetwork: 'currency.withLink',
};

/** One form for three sections. Each has a checkbox, and its fields are shown while it is checked. */
const fields = (Object.keys(parts) as Part[]).flatMap((part): Input<Values>[] => [
  { name: `${part}.enabled`, title: switches[part], kind: 'flag' },
  ...parts[part].map(([name, title, kind, optional]): Input<Values> => ({
    name: `${part}.${name}`,
    title,
    kind: kind ?? 'text',
    required: kind !== 'flag' && !optional,
    when: (values) => values[`${part}.enabled`] === true,
  })),
]);

/**
 * The request. Every field is required, also in a section that is not enabled. There the service reads only the codes,
 * by which it finds the records of the link.
 */
function request<B extends SetUp>(values: Values): B {
  const link = (name: string) => values[`currencyOfNetwork.${name}`];
  const codes: Values = {
    'currency.code': link('currencyCode'),
    'currencyNetwork.networkCode': link('networkCode'),
    'currencyOfNetwork.currencyCode': values['currency.code'],
    'currencyOfNetwork.networkCode': values['currencyNetwork.networkCode'],
  };
  const section = (part: Part): object => {
    const enabled = values[`${part}.enabled`] === true;
    const id = values[`${part}.id`];
    const all = parts[part].map(([name, , kind]): [string, unknown] => {
      const key = `${part}.${name}` as const;
      if (name === 'maxDeposit') return [name, values[key] || null];
      const empty = kind === 'flag' ? false : kind ? '0' : name === 'mintAddress' ? '' : (codes[key] ?? '-');
      return [name, values[key] ?? (enabled && !kind && name !== 'mintAddress' ? '' : empty)];
    });
    return { ...(id === undefined ? {} : { id }), enabled, ...Object.fromEntries(all) };
  };
  const body: Record<Part, object> = {
    currency: section('currency'),
    currencyNetwork: section('currencyNetwork'),
    currencyOfNetwork: section('currencyOfNetwork'),
  };
  return body as B;
}

const on: Values = { 'currency.enabled': true, 'currencyNetwork.enabled': true, 'currencyOfNetwork.enabled': true };

export function Setup() {
  return (
    <Write
      method="post"
      path={setup}
      title="currency.add"
      touches={touches}
      button={{ variant: 'filled' }}
      fields={fields}
      initial={{ ...on, 'currency.depositEnable': true, 'currency.withdrawEnable': true }}
      make={(values: Values) => request<SetUp>(values)}
    />
  );
}

/** Amounts stay text. */
function flat(part: Part, record: object): Values {
  const kinds = new Map<string, Kind | undefined>(parts[part].map(([name, , kind]) => [name, kind]));
  return Object.fromEntries(
    Object.entries(record)
      .filter(([name, value]) => kinds.has(name) && value !== null)
      .map(([name, value]) => [`${part}.${name}`, kinds.get(name) === 'money' ? String(value) : value]),
  );
}

export function Change({
  currency,
  network,
  link,
  onDone,
}: {
  currency: Currency;
  network: Network;
  link: Link;
  onDone: () => void;
}) {
  const before = {
    ...flat('currency', currency),
    ...flat('currencyNetwork', network),
    ...flat('currencyOfNetwork', link),
  };
  return (
    <Write
      method="post"
      path={update}
      title="currency.change"
      touches={touches}
      onDone={onDone}
      fields={fields}
      initial={{ ...on, ...before }}
      fixed={{ 'currency.id': currency.id, 'currencyNetwork.id': network.id, 'currencyOfNetwork.id': link.id }}
      before={(values) => (
        <div style={{ overflowWrap: 'anywhere' }}>
          <Diff before={sent(values, before)} after={sent(values, values)} names={names} />
        </div>
      )}
      make={(values: Values) => request<Schemas['UpdateAssetsRequest']>(values)}
    />
  );
}

/** The fields of the sections that are sent. */
function sent(values: Record<string, unknown>, of: Values): Values {
  return Object.fromEntries(
    Object.entries(of).filter(([key]) => !key.endsWith('.enabled') && values[`${key.split('.')[0]}.enabled`] === true),
  );
}

export function Activate({ currency, link, onDone }: { currency: Currency; link: Link; onDone: () => void }) {
  const before = { currency: currency.isActive, currencyOfNetwork: link.isActive };
  return (
    <Write
      method="post"
      path={activate}
      title="currency.activate"
      record={link.id}
      touches={touches}
      onDone={onDone}
      fields={[
        { name: 'currency', title: 'currency.currencyActive', kind: 'flag' },
        { name: 'currencyOfNetwork', title: 'currency.linkActive', kind: 'flag' },
      ]}
      initial={before}
      before={(values) => <Diff before={before} after={values} names={names} />}
      make={(values: typeof before) => ({
        currency: { id: currency.id, isActive: values.currency === true },
        currencyOfNetwork: { id: link.id, isActive: values.currencyOfNetwork === true },
      })}
    />
  );
}
