/** The countries from which the user's own account may be used. An empty list allows all. */
import { Group, Text } from '@mantine/core';
import { useMemo } from 'react';
import { useTranslation } from 'react-i18next';
import { base } from '../app/page';
import { Bulk } from '../kit/bulk';
import { List, type Column, type Row } from '../kit/list';
import { Time, type Option } from '../kit/show';
import { Write } from '../kit/write';
import { countryCodes } from './countrycodes';

const path = '/user/geofilter/countries';

const columns: Column<Row<typeof path>>[] = [
  { key: 'countryName', title: 'own.country', show: (c) => <Country code={c.countryCode} name={c.countryName} /> },
  { key: 'countryCode', title: 'own.countryCode', show: (c) => <bdi dir="ltr">{c.countryCode}</bdi> },
  { key: 'createDateTimeStamp', title: 'own.since', show: (c) => <Time at={c.createDateTimeStamp} /> },
];

/** The flag is the service's own copy: flagImage may name another host, which the policy of the page refuses. */
function Country({ code, name }: { code: string; name: string }) {
  return (
    <Group gap="xs" wrap="nowrap">
      <img src={`${base}/flags/${code}.svg`} alt="" width={30} height={20} />
      <bdi>{name}</bdi>
    </Group>
  );
}

/** All countries by their names in a language. The list of the service is for administrators. */
function countries(language: string): Option[] {
  const names = new Intl.DisplayNames(language, { type: 'region' });
  return countryCodes
    .map((value) => ({ value, label: names.of(value) ?? value }))
    .sort((a, b) => a.label.localeCompare(b.label, language));
}

export default function Countries() {
  const { t, i18n } = useTranslation();
  const known = useMemo(() => countries(i18n.language), [i18n.language]);
  return (
    <List
      path={path}
      title="own.countries"
      columns={columns}
      size={undefined}
      id={(c) => c.countryCode}
      empty="own.anywhere"
      above={<Text c="dimmed">{t('own.countriesLead')}</Text>}
      actions={
        <Write
          method="post"
          path={path}
          title="own.addCountry"
          touches={[path]}
          fields={[{ name: 'countryCode', title: 'own.country', kind: known, required: true }]}
        />
      }
      bulk={(rows, clear) => (
        <Bulk
          method="delete"
          path={path}
          title="own.remove"
          rows={rows}
          name={(c) => c.countryName}
          body={({ countryCode }) => ({ countryCode })}
          touches={[path]}
          onDone={clear}
          button={{ color: 'red' }}
        />
      )}
    />
  );
}
