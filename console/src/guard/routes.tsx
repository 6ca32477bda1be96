/** The routes of gateways: which of their requests need a session or a challenge. */
import { Anchor, Text } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import type { Schemas } from '../app/api';
import { useMay } from '../app/session';
import { Administered } from '../kit/administered';
import { Bulk } from '../kit/bulk';
import type { Column, Row } from '../kit/list';
import { useRead } from '../kit/read';
import { Coded, Nothing, Status, Time } from '../kit/show';
import { Word } from '../kit/word';
import { Write, type Input } from '../kit/write';
import { ShownValues } from './shownvalues';

const path = '/admin/guard/routes';
const explain = '/admin/guard/explain';
const actionsPath = '/admin/system/mfa/actions';
type Route = Row<typeof path>;
type Draft = Schemas['AddGuardRouteRequest'];

const statuses = ['ACTIVE', 'TRIAL', 'INACTIVE'] as const;
const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

const columns: Column<Route>[] = [
  {
    key: 'method',
    title: 'gateway.method',
    show: (r) => (r.method === '*' ? <Word of="gateway.anyMethod" /> : <Coded of={r.method} />),
  },
  { key: 'host', title: 'gateway.host', show: (r) => (r.host ? <Coded of={r.host} /> : <Word of="gateway.anyHost" />) },
  { key: 'path', title: 'gateway.path', show: (r) => <Coded of={r.path} /> },
  { key: 'mode', title: 'gateway.mode', show: (r) => <Word of={`gateway.mode.${r.mode}`} /> },
  {
    key: 'actionCode',
    title: 'gateway.action',
    show: (r) => (r.actionCode ? <Coded of={r.actionCode} /> : <Nothing />),
  },
  { key: 'status', title: 'gateway.status', show: (r) => <Status of={r.status} /> },
  { key: 'trialCount', title: 'gateway.trials', end: true },
  { key: 'updatedAt', title: 'parameter.updated', show: (r) => <Time at={r.updatedAt} />, hidden: true },
];

export default function Routes() {
  const { t } = useTranslation();
  const may = useMay();
  return (
    <Administered
      path={path}
      title="gateway.title"
      empty="gateway.none"
      next={{ title: 'gateway.add', form: 'gateway.add', needs: `POST ${path}` }}
      columns={columns}
      id={(r) => String(r.id)}
      actions={
        <>
          {may(`POST ${explain}`) && (
            <Anchor component={Link} to={'/gateways/explain'} size="sm">
              {t('gatewayWhy.title')}
            </Anchor>
          )}
          <Add />
        </>
      }
      one="gateway.one"
      curl={(r) => ({ method: 'POST', path, body: draftOf(r) })}
      lead="gateway.trialsHelp"
      change={{ title: 'gateway.change', needs: `PATCH ${path}`, testid: 'route-change' }}
      form={(r, close) => <Change route={r} onClose={close} />}
      acts={(open, close) => (
        <Bulk
          method="delete"
          path={path}
          title="gateway.remove"
          go="gateway.remove"
          rows={[open]}
          touches={[path]}
          onDone={close}
          name={(r) => <bdi dir="ltr">{`${r.method} ${r.host}${r.path}`}</bdi>}
          body={(r) => ({ id: r.id })}
          button={{ color: 'red', variant: 'light' }}
        >
          <Text size="sm">{t('gateway.removeLead')}</Text>
        </Bulk>
      )}
    />
  );
}

function useFields(): Input<Draft>[] {
  const { t } = useTranslation();
  const may = useMay();
  const actions = useRead(actionsPath, undefined, { enabled: may(`GET ${actionsPath}`) });
  const guarded = (v: Record<string, unknown>) => v.mode === 'guarded';
  return [
    { name: 'host', title: 'gateway.host', help: 'gateway.hostHelp' },
    {
      name: 'method',
      title: 'gateway.method',
      required: true,
      kind: [{ value: '*', label: t('gateway.anyMethod') }, ...methods],
    },
    { name: 'path', title: 'gateway.path', help: 'gateway.pathHelp', required: true },
    {
      name: 'mode',
      title: 'gateway.mode',
      required: true,
      kind: (['guarded', 'session', 'refuse'] as const).map((value) => ({ value, label: t(`gateway.mode.${value}`) })),
    },
    {
      name: 'actionCode',
      title: 'gateway.action',
      help: 'gateway.actionHelp',
      required: true,
      when: guarded,
      kind: actions.data?.map((a) => a.actionCode) ?? 'text',
    },
    { name: 'rows', title: 'gateway.rows', help: 'gateway.rowsHelp', kind: { of: ShownValues }, when: guarded },
    { name: 'status', title: 'gateway.status', help: 'gateway.statusHelp', required: true, kind: statuses },
  ];
}

/** The input as a request: what the form hides or leaves empty is cleared. */
const bodyOf = <V extends Partial<Draft>>(values: V) => ({ host: '', actionCode: '', rows: [], ...values });

const example = [{ key: 'total', label: 'Total', from: 'query', name: 'total' }];

/** A new route starts on trial. */
function Add() {
  return (
    <Write
      method="post"
      path={path}
      title="gateway.add"
      button={{ variant: 'filled' }}
      touches={[path]}
      fields={useFields()}
      initial={{ method: 'POST', mode: 'guarded', status: 'TRIAL', rows: example as Draft['rows'] }}
      make={(values) => bodyOf(values)}
    />
  );
}

function Change({ route, onClose }: { route: Route; onClose: () => void }) {
  return (
    <Write
      method="patch"
      path={path}
      title="gateway.change"
      touches={[path]}
      opened
      onClose={onClose}
      fixed={{ id: route.id }}
      fields={useFields()}
      initial={draftOf(route)}
      make={(values) => bodyOf(values)}
    />
  );
}

/** An existing route in the form of a request. */
function draftOf({ host, method, path: at, mode, actionCode, rows, status }: Route): Draft {
  return { host, method, path: at, mode, actionCode, rows, status };
}
