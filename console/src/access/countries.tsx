/** The countries from which the user's own account may be used. An empty list allows all. */
import { Button, Stack } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { each, useAct } from '../app/act';
import { Problem } from '../app/problem';
import { useMay } from '../app/session';
import { List, type Column, type Row } from '../kit/list';
import { useRead } from '../kit/read';
import { Time } from '../kit/show';
import { Write } from '../kit/write';

const path = '/user/geofilter/countries';

const columns: Column<Row<typeof path>>[] = [
  { key: 'countryName', title: 'own.country' },
  { key: 'countryCode', title: 'own.countryCode', show: (c) => <bdi dir="ltr">{c.countryCode}</bdi> },
  { key: 'createDateTimeStamp', title: 'own.since', show: (c) => <Time at={c.createDateTimeStamp} /> },
];

export default function Countries() {
  const { t } = useTranslation();
  const may = useMay();
  const all = useRead('/admin/get-country-list', undefined, { enabled: may('GET /admin/get-country-list') });
  const remove = useAct('delete', path, [path]);
  const known = (all.data ?? []).map((c) => ({ value: c.countryCode, label: c.countryName }));
  return (
    <Stack>
      <Problem of={remove.problem} />
      <List
        path={path}
        title="own.countries"
        columns={columns}
        size={undefined}
        id={(c) => c.countryCode}
        empty="own.anywhere"
        actions={
          <Write
            method="post"
            path={path}
            title="own.addCountry"
            touches={[path]}
            fields={[
              {
                name: 'countryCode',
                title: 'own.country',
                kind: known.length ? known : 'text',
                required: true,
                help: 'own.countryHelp',
              },
            ]}
          />
        }
        bulk={
          may(`DELETE ${path}`)
            ? (rows, clear) => (
                <Button
                  size="xs"
                  color="red"
                  loading={remove.busy}
                  onClick={() =>
                    void each(rows, ({ countryCode }) => remove.run({ countryCode })).then((done) => done && clear())
                  }
                >
                  {t('own.remove')}
                </Button>
              )
            : undefined
        }
      />
      {remove.view}
    </Stack>
  );
}
