/** The resources of permissions: endpoints, pages and parts of pages; and the resource types. */
import type { TFunction } from 'i18next';
import { useTranslation } from 'react-i18next';
import type { Schemas } from '../app/api';
import { useMay } from '../app/session';
import { Administered } from '../kit/administered';
import { Bulk } from '../kit/bulk';
import type { Column, Row } from '../kit/list';
import { useRead } from '../kit/read';
import { Status, Time } from '../kit/show';
import { Write, type Input } from '../kit/write';

type Resource = Schemas['Resource'];
const listed = '/resource/resources';
const one = '/resource/resource';
const typesPath = '/resource/resource-types';
const typePath = '/resource/resource-type';
type Type = Row<typeof typesPath>;

/** A resource and all its nested resources. */
export function flat(list: Resource[]): Resource[] {
  return list.flatMap((r) => [r, ...flat(r.subResources ?? [])]);
}

const columns: Column<Resource>[] = [
  { key: 'resourceCode', title: 'roles.resource', show: (r) => <bdi dir="ltr">{r.resourceCode}</bdi> },
  { key: 'resourceName', title: 'roles.name' },
  { key: 'resourceContext', title: 'roles.context' },
  { key: 'resourceTypeCode', title: 'roles.type' },
  { key: 'status', title: 'roles.status', show: (r) => <Status of={r.status === 1 ? 'ACTIVE' : 'INACTIVE'} /> },
  { key: 'subResources', title: 'roles.nested', show: (r) => String(flat(r.subResources ?? []).length || '–') },
  { key: 'resourceId', title: 'roles.resourceId', hidden: true },
];

const contexts = ['UI', 'API'] as const;

/** The values of a form: its status is the text of a choice. */
type Form<B> = Omit<B, 'status'> & { status: string };
type Edited = Form<Schemas['SaveResourceRequest']>;
type EditedType = Form<Schemas['SaveResourceTypeRequest']>;

function useResourceFields(): Input<Schemas['SaveResourceRequest']>[] {
  const { t } = useTranslation();
  const may = useMay();
  const types = useRead(typesPath, undefined, { enabled: may(`GET ${typesPath}`) });
  return [
    { name: 'code', title: 'roles.code', required: true },
    { name: 'name', title: 'roles.name', required: true },
    { name: 'resourceContext', title: 'roles.context', kind: contexts, required: true },
    {
      name: 'resourceTypeId',
      title: 'roles.type',
      required: true,
      kind: (types.data ?? []).map((y) => ({ value: String(y.id), label: `${y.code} (${y.resourceContext})` })),
    },
    { name: 'parentResourceId', title: 'roles.parent', kind: 'number' },
    { name: 'status', title: 'roles.status', required: true, kind: statuses(t) },
    { name: 'allResourceActions', title: 'roles.actionsOf', kind: 'json' },
    { name: 'menuItemProperties', title: 'roles.menuItem', kind: 'json' },
  ];
}

function statuses(t: TFunction) {
  return [
    { value: '1', label: t('roles.active') },
    { value: '0', label: t('roles.passive') },
  ];
}

/** The service requires a number where the form has a choice. */
const numbered = <V extends { status: string }>(v: V) => ({ ...v, status: v.status === '1' ? 1 : 0 });

export function Resources() {
  const fields = useResourceFields();
  return (
    <Administered
      path={listed}
      title="roles.resources"
      columns={columns}
      id={(r) => String(r.resourceId)}
      fixed={{ stored: true }}
      filters={[{ name: 'resourceContext', title: 'roles.context', kind: contexts }]}
      actions={
        <Write
          method="post"
          path={one}
          title="roles.addResource"
          touches={[listed]}
          fields={fields}
          initial={{ resourceContext: 'UI', status: '1' }}
          make={(v: Edited) => numbered(v)}
        />
      }
      bulk={(rows, clear) => (
        <Bulk
          method="delete"
          path={one}
          title="roles.removeResource"
          rows={rows}
          touches={[listed]}
          onDone={clear}
          name={(r) => <bdi dir="ltr">{r.resourceCode}</bdi>}
          body={(r) => ({ resourceId: r.resourceId })}
        />
      )}
      one="roles.resource"
      change={{ title: 'roles.change', needs: `POST ${one}`, testid: 'resource-change' }}
      form={(change, close) => (
        <Write
          method="post"
          path={one}
          title="roles.change"
          touches={[listed]}
          fields={fields}
          opened
          onClose={close}
          fixed={{ resourceId: change.resourceId }}
          make={(v: Edited) => numbered(v)}
          initial={{
            code: change.resourceCode,
            name: change.resourceName,
            resourceTypeId: String(change.resourceTypeId),
            status: String(change.status),
            resourceContext: change.resourceContext,
            allResourceActions: change.allResourceActions ?? undefined,
            menuItemProperties: change.menuItemProperties ?? undefined,
          }}
        />
      )}
    />
  );
}

const typeColumns: Column<Type>[] = [
  { key: 'code', title: 'roles.code', show: (y) => <bdi dir="ltr">{y.code}</bdi> },
  { key: 'name', title: 'roles.name' },
  { key: 'resourceContext', title: 'roles.context' },
  { key: 'status', title: 'roles.status', show: (y) => <Status of={y.status === 1 ? 'ACTIVE' : 'INACTIVE'} /> },
  { key: 'udate', title: 'roles.at', show: (y) => <Time at={y.udate} /> },
];

export function ResourceTypes() {
  const { t } = useTranslation();
  const fields: Input<Schemas['SaveResourceTypeRequest']>[] = [
    { name: 'code', title: 'roles.code', required: true },
    { name: 'name', title: 'roles.name', required: true },
    { name: 'resourceContext', title: 'roles.context', kind: contexts, required: true },
    { name: 'status', title: 'roles.status', required: true, kind: statuses(t) },
    { name: 'allResourceActions', title: 'roles.actionsOf', kind: 'json' },
  ];
  return (
    <Administered
      path={typesPath}
      title="roles.types"
      columns={typeColumns}
      id={(y) => String(y.id)}
      actions={
        <Write
          method="post"
          path={typePath}
          title="roles.addType"
          touches={[typesPath]}
          fields={fields}
          initial={{ resourceContext: 'UI', status: '1' }}
          make={(v: EditedType) => numbered(v)}
        />
      }
      bulk={(rows, clear) => (
        <Bulk
          method="delete"
          path={typePath}
          title="roles.removeType"
          rows={rows}
          touches={[typesPath]}
          onDone={clear}
          name={(y) => <bdi dir="ltr">{y.code}</bdi>}
          body={(y) => ({ resourceTypeId: y.id })}
        />
      )}
      one="roles.type"
      change={{ title: 'roles.change', needs: `POST ${typePath}` }}
      form={(change, close) => (
        <Write
          method="post"
          path={typePath}
          title="roles.change"
          touches={[typesPath]}
          fields={fields}
          opened
          onClose={close}
          fixed={{ resourceTypeId: change.id }}
          make={(v: EditedType) => numbered(v)}
          initial={{
            code: change.code,
            name: change.name,
            resourceContext: change.resourceContext,
            status: String(change.status),
            allResourceActions: change.allResourceActions ?? undefined,
          }}
        />
      )}
    />
  );
}
