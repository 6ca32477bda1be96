/** The contracts with all versions, and adding a contract. A version is opened to edit and to publish it. */
import { Text } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { useMay } from '../app/session';
import { List, type Column, type FilterOf, type Row } from '../kit/list';
import { said } from '../kit/sheets';
import { Id, Status, Time, Titled } from '../kit/show';
import { Write } from '../kit/write';
import { versions, type Version } from './version';

const plain = '/admin/get-contracts';
type Contract = Row<typeof plain>;

const common = [
  {
    key: 'name',
    title: 'contract.name',
    show: (c: Contract) => <Titled name={c.name} code={c.code} />,
    text: (c: Contract) => `${c.name} (${c.code})`,
  },
  { key: 'code', title: 'contract.code', show: (c: Contract) => <Id of={c.code} />, hidden: true },
  { key: 'version', title: 'contract.version' },
] as const;
const created = {
  key: 'createdAt',
  title: 'contract.created',
  show: (c: Contract) => <Time at={c.createdAt} />,
} as const;

const columns: Column<Version>[] = [
  ...common,
  { key: 'status', title: 'contract.status', card: 'top', show: (c) => <Status of={c.status} /> },
  { key: 'publishedAt', title: 'contract.published', show: (c) => <Time at={c.publishedAt} /> },
  created,
];

const filters: FilterOf<typeof plain>[] = [{ name: 'code', title: 'contract.code' }];

export default function Contracts() {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const may = useMay();
  const to = (id: number) => void navigate({ to: `/contracts/${id}` });
  const shared = {
    title: 'contract.title' as const,
    size: undefined,
    id: (c: Contract) => String(c.id),
    empty: 'contract.none' as const,
    open: may('GET /admin/get-contract-details') ? (c: Contract) => to(c.id) : undefined,
  };
  if (!may(`GET ${versions}`))
    return (
      <List
        {...shared}
        path={plain}
        columns={[
          ...common,
          { key: 'isActive', title: 'contract.active', show: (c) => <Status of={c.isActive} /> },
          created,
        ]}
        filters={filters}
      />
    );
  return (
    <List
      {...shared}
      path={versions}
      columns={columns}
      next={{ title: 'contract.create', form: 'contract.create', needs: `POST ${versions}` }}
      actions={
        <Write
          method="post"
          path={versions}
          title="contract.create"
          button={{ variant: 'filled' }}
          touches={[versions, plain]}
          fields={[
            { name: 'code', title: 'contract.code', help: 'contract.codeHelp', required: true },
            { name: 'name', title: 'contract.name', required: true },
            { name: 'nameTr', title: 'contract.nameTr', help: 'contract.nameHelp' },
            { name: 'nameAr', title: 'contract.nameAr', help: 'contract.nameHelp' },
            { name: 'version', title: 'contract.version' },
          ]}
          before={() => <Text size="sm">{t('contract.createHelp')}</Text>}
          onDone={(answer) => to(said<{ id: number }>(answer).id)}
        />
      }
    />
  );
}
