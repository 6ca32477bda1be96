/** Roles, permissions, assignments and the change log. */
import { Tabs } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { useTexts } from '../app/address';
import { useMay } from '../app/session';
import { List, type Column, type Row } from '../kit/list';
import { useRead } from '../kit/read';
import { Status, Time } from '../kit/show';
import { Matrix } from './matrix';
import { Members } from './members';
import { Resources, ResourceTypes, flat } from './resources';

const tabs = [
  { name: 'matrix', needs: ['GET /admin/role-resource-permission', 'GET /resource/resources'], view: Matrix },
  { name: 'members', needs: ['GET /admin/user-roles'], view: Members },
  { name: 'log', needs: ['GET /admin/role-resource-permission-log'], view: Log },
  { name: 'resources', needs: ['GET /resource/resources'], view: Resources },
  { name: 'types', needs: ['GET /resource/resource-types'], view: ResourceTypes },
] as const;

export default function Roles() {
  const { t } = useTranslation();
  const may = useMay();
  const navigate = useNavigate();
  const { tab = 'matrix' } = useTexts();
  const shown = tabs.filter(({ needs }) => needs.every(may));
  return (
    <Tabs
      variant="pills"
      value={tab}
      keepMounted={false}
      onChange={(next) => void navigate({ to: '.', search: { tab: next ?? undefined } })}
    >
      <Tabs.List mb="md">
        {shown.map(({ name }) => (
          <Tabs.Tab key={name} value={name} data-testid={`tab-${name}`}>
            {t(`roles.${name}`)}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {shown.map(({ name, view: View }) => (
        <Tabs.Panel key={name} value={name}>
          <View />
        </Tabs.Panel>
      ))}
    </Tabs>
  );
}

const log = '/admin/role-resource-permission-log';

/** The rows carry ids; the names come from the two lists that the matrix reads too. */
function Log() {
  const may = useMay();
  const roles = useRead('/admin/roles');
  const resources = useRead('/resource/resources', undefined, { enabled: may('GET /resource/resources') });
  const role = new Map(roles.data?.map((r) => [String(r.id), r.code]));
  const resource = new Map(flat(resources.data ?? []).map((r) => [String(r.resourceId), r.resourceCode]));
  const columns: Column<Row<typeof log>>[] = [
    { key: 'createdAt', title: 'roles.at', show: (e) => <Time at={e.createdAt} /> },
    { key: 'roleId', title: 'roles.role', show: (e) => <bdi>{role.get(e.roleId) ?? e.roleId}</bdi> },
    {
      key: 'resourceId',
      title: 'roles.resource',
      show: (e) => <bdi dir="ltr">{resource.get(e.resourceId) ?? e.resourceId}</bdi>,
    },
    { key: 'permission', title: 'roles.permission', show: (e) => <Status of={e.permission} /> },
  ];
  return (
    <List
      key={`${role.size} ${resource.size}`}
      path={log}
      title="roles.log"
      columns={columns}
      id={(e) => e.id}
      filters={[
        { name: 'roleId', title: 'roles.roleId' },
        { name: 'resourceId', title: 'roles.resourceId' },
      ]}
    />
  );
}
