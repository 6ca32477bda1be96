/** The options of form fields, such as the source of funding, in three languages. */
import { Text } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useMay } from '../app/session';
import { List, type Column, type FilterOf, type Row } from '../kit/list';
import { Diff } from '../kit/record';
import { Coded, Status } from '../kit/show';
import { Write } from '../kit/write';
import type { TextKey } from '../text/key';

const path = '/admin/dropdown-options';
type Option = Row<typeof path>;

const names: Record<string, TextKey> = {
  nameEn: 'options.nameEn',
  nameTr: 'options.nameTr',
  nameAr: 'options.nameAr',
  isExplainMandatory: 'options.explain',
  orderNo: 'options.order',
  isActive: 'options.active',
};

const columns: Column<Option>[] = [
  { key: 'dropdownCode', title: 'options.list', show: (o) => <Coded of={o.dropdownCode} /> },
  { key: 'code', title: 'options.code', show: (o) => <Coded of={o.code} /> },
  { key: 'nameEn', title: 'options.nameEn' },
  { key: 'nameTr', title: 'options.nameTr' },
  { key: 'nameAr', title: 'options.nameAr' },
  { key: 'isExplainMandatory', title: 'options.explain', show: (o) => <Status of={o.isExplainMandatory} /> },
  { key: 'orderNo', title: 'options.order', end: true },
  { key: 'isActive', title: 'options.active', show: (o) => <Status of={o.isActive} /> },
];

const filters: FilterOf<typeof path>[] = [{ name: 'dropdownCode', title: 'options.list' }];

const fields = [
  { name: 'nameEn', title: 'options.nameEn', required: true },
  { name: 'nameTr', title: 'options.nameTr', required: true },
  { name: 'nameAr', title: 'options.nameAr', required: true },
  { name: 'isExplainMandatory', title: 'options.explain', kind: 'flag' },
] as const;

export default function Options() {
  const { t } = useTranslation();
  const may = useMay();
  const [edited, setEdited] = useState<Option>();
  return (
    <>
      <List
        path={path}
        title="options.title"
        empty="options.none"
        columns={columns}
        filters={filters}
        size={undefined}
        id={(o) => String(o.id)}
        open={may(`PATCH ${path}`) ? setEdited : undefined}
        above={
          <Text size="sm" c="dimmed">
            {t('options.lead')}
          </Text>
        }
        actions={
          <Write
            method="post"
            path={path}
            title="options.add"
            touches={[path]}
            fields={[
              { name: 'dropdownCode', title: 'options.list', required: true },
              { name: 'code', title: 'options.code', help: 'options.codeHelp', required: true },
              ...fields,
              { name: 'orderNo', title: 'options.order', help: 'options.orderHelp', kind: 'number' },
            ]}
            initial={{ isExplainMandatory: false }}
          />
        }
      />
      {edited && (
        <Write
          key={edited.id}
          record={edited.id}
          method="patch"
          path={path}
          title="options.change"
          touches={[path]}
          opened
          onClose={() => setEdited(undefined)}
          initial={edited}
          fields={[
            ...fields,
            { name: 'orderNo', title: 'options.order', kind: 'number', required: true },
            { name: 'isActive', title: 'options.active', help: 'options.activeHelp', kind: 'flag' },
          ]}
          make={(values) => ({ id: edited.id, ...changed(edited, values) })}
          before={(values) => <Diff before={edited} after={{ ...edited, ...changed(edited, values) }} names={names} />}
        />
      )}
    </>
  );
}

/** The values that differ from those of the option. */
function changed(option: Option, values: Record<string, unknown>): object {
  const before = option as unknown as Record<string, unknown>;
  return Object.fromEntries(
    Object.keys(names)
      .filter((name) => values[name] !== undefined && values[name] !== before[name])
      .map((name) => [name, values[name]]),
  );
}
