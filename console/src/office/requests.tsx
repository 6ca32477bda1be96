/** Requests for deployments and for VPN access, with decisions one by one or in bulk. */
import { Alert, Group, TextInput } from '@mantine/core';
import { useState, type ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import type { Body } from '../app/api';
import { useSession } from '../app/session';
import { Bulk } from '../kit/bulk';
import { List, type Column, type FilterOf, type Row } from '../kit/list';
import { Person } from '../kit/person';
import { Whole } from '../kit/record';
import { Coded, Status, Time } from '../kit/show';
import { Write, type Input } from '../kit/write';
import { Sheets } from '../kit/sheets';
import type { TextKey } from '../text/key';

const deploys = '/admin/deploy-request';
const vpns = '/admin/vpn-request';
const changeDeploy = '/admin/update-deploy-request';
const changeVPN = '/admin/update-vpn-request';
type Deploy = Row<typeof deploys>;
type VPN = Row<typeof vpns>;
type Any = Deploy | VPN;

const statuses = ['PENDING', 'APPROVED', 'REJECTED', 'ALL'] as const;
const decisions = ['APPROVED', 'REJECTED'] as const;
const titles = { APPROVED: 'request.approve', REJECTED: 'request.reject' } as const;
const colours = { APPROVED: 'green', REJECTED: 'red' };

/** The shared columns; a row is a record of either kind. */
function people<T extends Any>(): Column<T>[] {
  return [
    { key: 'requestor_userid', title: 'request.by', show: (r) => <Person id={r.requestor_userid} /> },
    { key: 'created_at', title: 'request.at', show: (r) => <Time at={r.created_at} /> },
    { key: 'status', title: 'request.status', show: (r) => <Status of={r.status} /> },
    {
      key: 'approver_rejection_userid',
      title: 'request.decider',
      show: (r) => <Person id={r.approver_rejection_userid} />,
      hidden: true,
    },
    { key: 'updated_at', title: 'request.changed', show: (r) => <Time at={r.updated_at} />, hidden: true },
  ] as Column<T>[];
}

const deployColumns: Column<Deploy>[] = [
  { key: 'service_name', title: 'request.service', show: (d) => <Coded of={d.service_name} /> },
  { key: 'build_number', title: 'request.build', show: (d) => <Coded of={d.build_number} /> },
  { key: 'type', title: 'request.type', show: (r) => <Status of={r.type} /> },
  { key: 'comment', title: 'request.comment' },
  { key: 'duration_minutes', title: 'request.minutes', end: true },
  { key: 'original_service_name', title: 'request.original', hidden: true },
  ...people<Deploy>(),
];

const vpnColumns: Column<VPN>[] = [
  { key: 'user_name', title: 'request.login', show: (v) => <Coded of={v.user_name} /> },
  {
    key: 'name',
    title: 'request.name',
    show: (v) => (
      <bdi>
        {v.name} {v.surname}
      </bdi>
    ),
  },
  { key: 'type', title: 'request.type', show: (r) => <Status of={r.type} /> },
  { key: 'comment', title: 'request.comment' },
  ...people<VPN>(),
];

const deployFilters: FilterOf<typeof deploys>[] = [
  { name: 'status', title: 'request.status', kind: statuses },
  { name: 'service_name', title: 'request.service' },
  { name: 'original_service_name', title: 'request.original' },
  { name: 'type', title: 'request.type' },
];

const vpnFilters: FilterOf<typeof vpns>[] = [
  { name: 'status', title: 'request.status', kind: statuses },
  { name: 'user_name', title: 'request.login' },
  { name: 'type', title: 'request.type' },
];

const askDeploy: Input<Body<typeof deploys, 'post'>>[] = [
  { name: 'service_name', title: 'request.service', required: true },
  { name: 'original_service_name', title: 'request.original', required: true },
  { name: 'build_number', title: 'request.build', required: true },
  { name: 'duration_minutes', title: 'request.minutes', required: true, kind: 'number' },
  { name: 'type', title: 'request.type', required: true },
  { name: 'comment', title: 'request.comment', required: true, kind: 'area' },
];

const askVPN: Input<Body<typeof vpns, 'post'>>[] = [
  { name: 'userId', title: 'request.by', required: true, help: 'request.byHelp' },
  { name: 'user_name', title: 'request.login', required: true },
  { name: 'type', title: 'request.type', required: true },
  { name: 'comment', title: 'request.comment', kind: 'area' },
];

const status = { name: 'status', title: 'request.status', required: true, kind: statuses.slice(0, 3) } as const;

const editDeploy: Input<Body<typeof changeDeploy, 'post'>>[] = [
  { name: 'service_name', title: 'request.service', required: true },
  { name: 'original_service_name', title: 'request.original', required: true },
  { name: 'build_number', title: 'request.build', required: true },
  { name: 'duration_minutes', title: 'request.minutes', required: true, kind: 'number' },
  status,
  { name: 'comment', title: 'request.comment', required: true, kind: 'area' },
];

const editVPN: Input<Body<typeof changeVPN, 'post'>>[] = [
  { name: 'user_name', title: 'request.login', required: true },
  status,
  { name: 'comment', title: 'request.comment', kind: 'area' },
];

export default function Requests() {
  return (
    <Sheets
      label="request.title"
      sheets={[
        {
          name: 'deploy',
          title: 'request.deploys',
          needs: `GET ${deploys}`,
          show: () => (
            <Board
              key="deploy"
              path={deploys}
              change={changeDeploy}
              title="request.deploys"
              askTitle="request.askDeploy"
              columns={deployColumns}
              filters={deployFilters}
              ask={askDeploy}
              edit={editDeploy}
              fixed={({ id }: Deploy) => ({ id })}
              name={(d: Deploy) => (
                <bdi dir="ltr">
                  {d.service_name} {d.build_number}
                </bdi>
              )}
            />
          ),
        },
        {
          name: 'vpn',
          title: 'request.vpns',
          needs: `GET ${vpns}`,
          show: () => (
            <Board
              key="vpn"
              path={vpns}
              change={changeVPN}
              title="request.vpns"
              askTitle="request.askVpn"
              columns={vpnColumns}
              filters={vpnFilters}
              ask={askVPN}
              edit={editVPN}
              fixed={({ id }: VPN) => ({ id })}
              name={(v: VPN) => (
                <bdi dir="ltr">
                  {v.user_name} · {v.type}
                </bdi>
              )}
            />
          ),
        },
      ]}
    />
  );
}

/** The requests of one kind: create, decide one by one or in bulk, and change. */
function Board<P extends typeof deploys | typeof vpns, C extends typeof changeDeploy | typeof changeVPN>({
  path,
  change,
  title,
  askTitle,
  columns,
  filters,
  ask,
  edit,
  fixed,
  name,
}: {
  path: P;
  change: C;
  title: TextKey;
  askTitle: TextKey;
  columns: Column<Row<P>>[];
  filters: FilterOf<P>[];
  ask: Input<Body<P, 'post'>>[];
  edit: Input<Body<C, 'post'>>[];
  /** The id of a request, in the body of a change. */
  fixed: (row: Row<P>) => Partial<Body<C, 'post'>>;
  name: (row: Row<P>) => ReactNode;
}) {
  const [open, setOpen] = useState<Row<P>>();
  const close = () => setOpen(undefined);
  const decide = (rows: Row<P>[], onDone: () => void) => (
    <Decide path={change} touches={path} rows={rows} name={name as (row: Any) => ReactNode} onDone={onDone} />
  );
  return (
    <>
      <List
        path={path}
        title={title}
        columns={columns}
        filters={filters}
        id={(r) => String((r as Any).id)}
        open={setOpen}
        empty="request.none"
        next={{ title: askTitle, form: askTitle, needs: `POST ${path}` }}
        actions={<Write method="post" path={path} title={askTitle} touches={[path]} fields={ask} />}
        bulk={decide}
      />
      <Whole of={open} title="request.one" onClose={close}>
        {open && (
          <>
            <Own of={open} />
            <Group>
              {decide([open], close)}
              <Write
                method="post"
                path={change}
                title="request.change"
                touches={[path]}
                onDone={close}
                fixed={fixed(open)}
                initial={open}
                fields={edit}
              />
            </Group>
          </>
        )}
      </Whole>
    </>
  );
}

/** The service allows users to decide on their own requests; the screen warns about it. */
function Own({ of }: { of: Any }) {
  const { t } = useTranslation();
  const { userId } = useSession();
  return of.requestor_userid === userId && of.status === 'PENDING' ? (
    <Alert color="yellow">{t('request.own')}</Alert>
  ) : null;
}

/** Approve and reject, with a comment that replaces the comment of the request if it is not empty. */
function Decide({
  path,
  touches,
  rows,
  name,
  onDone,
}: {
  path: typeof changeDeploy | typeof changeVPN;
  touches: string;
  rows: Any[];
  name: (row: Any) => ReactNode;
  onDone: () => void;
}) {
  const { t } = useTranslation();
  const [comment, setComment] = useState('');
  return decisions.map((status) => (
    <Bulk
      key={status}
      method="post"
      path={path}
      title={titles[status]}
      rows={rows}
      name={name}
      touches={[touches]}
      onDone={onDone}
      button={{ color: colours[status], variant: 'light' }}
      body={(row) => ({ id: row.id, status, ...(comment.trim() ? { comment: comment.trim() } : {}) })}
    >
      <TextInput
        label={t('request.comment')}
        description={t('request.commentHelp')}
        value={comment}
        data-testid="decision-comment"
        onChange={(event) => setComment(event.currentTarget.value)}
      />
    </Bulk>
  ));
}
