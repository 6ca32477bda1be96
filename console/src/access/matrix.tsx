/** The permissions of the roles: a row for each resource, a column for each role. Cells are edited in place. */
import {
  Button,
  Group,
  Modal,
  NativeSelect,
  Select,
  Stack,
  Table,
  Text,
  TextInput,
  Title,
  UnstyledButton,
  useMatches,
} from '@mantine/core';
import { IconChevronDown } from '@tabler/icons-react';
import { Fragment, useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { Schemas } from '../app/api';
import { useAct } from '../app/act';
import { folded } from '../app/search/palette';
import { Problem } from '../app/problem';
import { useMay } from '../app/session';
import { useRead } from '../kit/read';
import { Diff } from '../kit/record';
import { Titled } from '../kit/show';
import { Write } from '../kit/write';
import { flat } from './resources';
import { Wide } from '../kit/wide';

const grants = '/admin/role-resource-permission';
const log = '/admin/role-resource-permission-log';
type Role = Schemas['Role'];
type Resource = Schemas['Resource'];
type Permission = Schemas['RolePermission']['permission'];
interface Cell {
  role: Role;
  resource: Resource;
  before: Permission | '';
  after: Permission | '';
}

const permissions: Permission[] = ['ALLOW', 'AUDIT', 'DENY'];
/** The area of an endpoint is the first whose pattern its path matches. Areas have the names of the menu's groups. */
const areas = [
  ['work', /^\/admin\/(approvals|deploy-request|vpn-request|update-(deploy|vpn)-request)/],
  ['system', /^\/(integration|admin\/(jobs|cluster|setup|presence|(get|update)-parameters))/],
  ['security', /^\/(resource|admin\/(audit|role|service-keys|system|user-roles))/],
  ['money', /asset|currency|currencies|rates|balance|blockage|transaction|withdrawal|daily-position|\/process\//],
  ['content', /contract|announcement|\/cdn\/|send-|terms-of-service|get-agreements/],
  ['own', /^\/(auth\/|\.well-known|user\/(agreements|notifications|geofilter|limit-info|preferences|user-profile))/],
  ['people', /^\//],
] as const;

/** The area of a resource by its code, "GET /admin/roles"; '' for parts of pages. */
const areaOf = (code: string) => areas.find(([, path]) => path.test(code.replace(/^\S+ /, '')))?.[0] ?? '';

export function Matrix() {
  const { t } = useTranslation();
  const may = useMay();
  const [text, setText] = useState('');
  const [context, setContext] = useState<'API' | 'UI'>('API');
  const [only, setOnly] = useState<string | null>(null);
  const [area, setArea] = useState<string | null>(null);
  const [cell, setCell] = useState<Cell>();
  const roles = useRead('/admin/roles');
  const resources = useRead('/resource/resources', { resourceContext: context });
  const granted = useRead(grants);
  const phone = useMatches({ base: true, xs: false });
  const editable = (roles.data ?? []).filter((r) => r.code !== 'admin');
  const one = only ?? (phone ? editable[0]?.code : undefined); // a phone has room for one column
  const columns = editable.filter((r) => !one || r.code === one);
  const given = new Map(granted.data?.map((g) => [`${g.roleId} ${g.resourceId}`, g.permission]));
  const order = (r: Resource) => areas.findIndex(([name]) => name === areaOf(r.resourceCode));
  const rows = flat(resources.data ?? [])
    .filter((r) => folded(`${r.resourceCode} ${r.resourceName}`).includes(folded(text)))
    .filter((r) => !area || areaOf(r.resourceCode) === area)
    .sort((a, b) => order(a) - order(b));
  const groups = [...Map.groupBy(rows, (r) => areaOf(r.resourceCode))];
  const [chosen, setChosen] = useState<ReadonlySet<string>>(); // undefined: the first area is open
  const open = chosen ?? new Set(groups.slice(0, 1).map(([name]) => name));
  const found = !!text || !!area;
  const isOpen = (name: string) => found || open.has(name);
  const toggle = (name: string) => setChosen(open.symmetricDifference(new Set([name])));
  const change = may(`POST ${grants}`);
  return (
    <Stack>
      <Group justify="space-between">
        <Title order={1} size="h3">
          {t('roles.title')}
        </Title>
        <Group gap="xs">
          <RoleWrites roles={roles.data ?? []} />
        </Group>
      </Group>
      <Text size="sm" c="dimmed" data-testid="matrix-legend">
        {t('roles.lead')} {t('roles.legend')}
      </Text>
      <Group role="search" align="end" gap="xs">
        <TextInput
          size="xs"
          w={260}
          label={t('roles.find')}
          value={text}
          onChange={(e) => setText(e.currentTarget.value)}
          data-testid="matrix-find"
        />
        <Select
          size="xs"
          w={150}
          label={t('roles.role')}
          data={editable.map((r) => r.code)}
          value={one ?? null}
          onChange={setOnly}
          clearable={!phone}
          data-testid="matrix-role"
        />
        {context === 'API' && (
          <Select
            size="xs"
            w={150}
            label={t('roles.area')}
            data={areas.map(([value]) => ({ value, label: t(`group.${value}`) }))}
            value={area}
            onChange={setArea}
            clearable
            data-testid="matrix-area"
          />
        )}
        <NativeSelect
          size="xs"
          label={t('roles.context')}
          data={['API', 'UI']}
          value={context}
          onChange={(e) => {
            setContext(e.currentTarget.value as 'API' | 'UI');
            setArea(null);
          }}
        />
      </Group>
      <Problem of={roles.error ?? resources.error ?? granted.error} />
      <Wide label={t('roles.matrix')} minWidth={phone ? 0 : 500} maxHeight="70vh">
        <Table stickyHeader data-testid="matrix" className="matrix">
          <Table.Thead>
            <Table.Tr>
              <Table.Th className="stays">{t('roles.resource')}</Table.Th>
              {columns.map((r) => (
                <Table.Th key={r.id} title={r.name}>
                  <bdi>{r.code}</bdi>
                </Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {granted.data &&
              groups.map(([name, resources]) => (
                <Fragment key={name}>
                  {name && (
                    <Table.Tr data-area={name}>
                      <Table.Th scope="rowgroup" colSpan={columns.length + 1} className="area">
                        <UnstyledButton
                          onClick={() => toggle(name)}
                          disabled={found}
                          aria-expanded={isOpen(name)}
                          data-testid={`area-${name}`}
                        >
                          <IconChevronDown size={14} aria-hidden />
                          {t(`group.${name}`)} <bdi>{resources.length}</bdi>
                        </UnstyledButton>
                      </Table.Th>
                    </Table.Tr>
                  )}
                  {(isOpen(name) ? resources : []).map((resource) => (
                    <Table.Tr key={resource.resourceId}>
                      <Table.Th scope="row" fw={400} className="stays">
                        <Titled name={resource.resourceName} code={resource.resourceCode} />
                      </Table.Th>
                      {columns.map((role) => {
                        const before = given.get(`${role.id} ${resource.resourceId}`) ?? '';
                        return (
                          <Table.Td key={role.id}>
                            <NativeSelect
                              size="xs"
                              w={110}
                              className="cell"
                              data-none={!before || undefined}
                              disabled={!change}
                              value={before}
                              aria-label={`${role.code}: ${resource.resourceCode}`}
                              data={[
                                { value: '', label: '–' },
                                ...permissions.map((value) => ({ value, label: t(`roles.${value}`) })),
                              ]}
                              onChange={(e) =>
                                setCell({ role, resource, before, after: e.currentTarget.value as Permission | '' })
                              }
                              data-testid={`cell-${role.code}-${resource.resourceCode}`}
                            />
                          </Table.Td>
                        );
                      })}
                    </Table.Tr>
                  ))}
                </Fragment>
              ))}
          </Table.Tbody>
        </Table>
      </Wide>
      <Text size="sm" c="dimmed">
        {t('roles.count', { count: rows.length })}
      </Text>
      {cell && <Confirm cell={cell} onClose={() => setCell(undefined)} />}
    </Stack>
  );
}

/** Shows the old and the new permission before a cell changes. */
function Confirm({ cell, onClose }: { cell: Cell; onClose: () => void }) {
  const { t } = useTranslation();
  const grant = useAct('post', grants, [grants, log]);
  const revoke = useAct('delete', grants, [grants, log]);
  const { role, resource, before, after } = cell;
  const ids = { roleId: role.id, resourceId: resource.resourceId };
  async function go() {
    const done = after ? await grant.run({ ...ids, permission: after }) : await revoke.run(ids);
    if (done !== undefined) onClose();
  }
  const name = (permission: Permission | '') => ({
    [t('roles.permission')]: permission ? t(`roles.${permission}`) : t('roles.none'),
  });
  return (
    <Modal opened onClose={onClose} title={t('roles.change')}>
      <Stack>
        <Text size="sm">
          <bdi>
            {role.name} ({role.code})
          </bdi>
        </Text>
        <Text size="sm">
          <bdi dir="ltr">{resource.resourceCode}</bdi>
        </Text>
        <Diff before={name(before)} after={name(after)} />
        <Text size="sm" c="dimmed">
          {t('roles.atOnce')}
        </Text>
        <Problem of={grant.problem ?? revoke.problem} />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            {t('cancel')}
          </Button>
          <Button loading={grant.busy || revoke.busy} onClick={() => void go()} data-testid="matrix-send">
            {t('roles.change')}
          </Button>
        </Group>
        {grant.view}
        {revoke.view}
      </Stack>
    </Modal>
  );
}

function RoleWrites({ roles }: { roles: Role[] }) {
  return (
    <>
      <Write
        method="post"
        path="/admin/roles"
        title="roles.add"
        touches={['/admin/roles']}
        button={{ variant: 'filled' }}
        fields={[
          { name: 'code', title: 'roles.code', required: true, help: 'roles.codeHelp' },
          { name: 'name', title: 'roles.name', required: true },
        ]}
      />
      <Write
        method="delete"
        path="/admin/roles"
        title="roles.remove"
        touches={['/admin/roles']}
        fields={[
          {
            name: 'code',
            title: 'roles.role',
            required: true,
            help: 'roles.removeHelp',
            kind: roles
              .filter((r) => r.code !== 'admin' && r.code !== 'user')
              .map((r) => ({ value: r.code, label: r.name })),
          },
        ]}
      />
    </>
  );
}
