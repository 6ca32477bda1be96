/** The user's own withdrawal addresses. */
import { useState } from 'react';
import { useMay } from '../app/session';
import { Bulk } from '../kit/bulk';
import { List, type Column, type Row } from '../kit/list';
import { useRead } from '../kit/read';
import { Id, Time } from '../kit/show';
import { Write } from '../kit/write';

const path = '/asset/withdrawal-addresses';
type Address = Row<typeof path>;

const columns: Column<Address>[] = [
  { key: 'name', title: 'own.name' },
  { key: 'currencyCode', title: 'own.currency' },
  { key: 'networkCode', title: 'own.network', show: (a) => <bdi dir="ltr">{a.networkCode}</bdi> },
  { key: 'address', title: 'own.address', show: (a) => <Id of={a.address} /> },
  { key: 'addressTag', title: 'own.addressTag', show: (a) => <bdi dir="ltr">{a.addressTag}</bdi> },
  { key: 'usableFrom', title: 'own.usableFrom', show: (a) => <Time at={a.usableFrom} /> },
];

export default function Addresses() {
  const may = useMay();
  const [edited, setEdited] = useState<Address>();
  const pairs = useRead('/get-all-currency-network', undefined, { enabled: may('GET /get-all-currency-network') });
  const codes = (key: 'currencyCode' | 'networkCode') => {
    const found = [...new Set((pairs.data ?? []).map((p) => p[key]))].sort();
    return found.length ? found : ('text' as const);
  };
  return (
    <>
      <List
        path={path}
        title="own.addresses"
        columns={columns}
        empty="own.noAddresses"
        next={{ title: 'own.addAddress', form: 'own.addAddress', needs: `POST ${path}` }}
        size={undefined}
        id={(a) => a.id}
        open={may(`PATCH ${path}`) ? setEdited : undefined}
        actions={
          <Write
            method="post"
            path={path}
            title="own.addAddress"
            touches={[path]}
            fields={[
              { name: 'name', title: 'own.name', required: true },
              { name: 'currencyCode', title: 'own.currency', kind: codes('currencyCode'), required: true },
              { name: 'networkCode', title: 'own.network', kind: codes('networkCode'), required: true },
              { name: 'address', title: 'own.address', required: true },
              { name: 'addressTag', title: 'own.addressTag' },
            ]}
          />
        }
        bulk={(rows, clear) => (
          <Bulk
            method="delete"
            path={path}
            title="own.remove"
            rows={rows}
            name={(a) => `${a.name} ${a.address}`}
            body={(a) => ({ id: a.id })}
            touches={[path]}
            onDone={clear}
            button={{ color: 'red' }}
          />
        )}
      />
      {edited && (
        <Write
          key={edited.id}
          method="patch"
          path={path}
          title="own.editAddress"
          touches={[path]}
          opened
          onClose={() => setEdited(undefined)}
          fixed={{ id: edited.id }}
          initial={{ name: edited.name, address: edited.address, addressTag: edited.addressTag }}
          fields={[
            { name: 'name', title: 'own.name' },
            { name: 'address', title: 'own.address' },
            { name: 'addressTag', title: 'own.addressTag' },
          ]}
        />
      )}
    </>
  );
}
