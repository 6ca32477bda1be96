/** Requests for deployments and for VPN access: what waits is decided here, one by one or many at once. */
import { Alert, Group, TextInput } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useSession } from '../app/session';
import { Bulk } from '../kit/bulk';
import { List, type Column, type FilterOf, type Row } from '../kit/list';
import { Whole } from '../kit/record';
import { Id, Status, Time } from '../kit/show';
import { Write } from '../kit/write';
import { Sheets } from './parts';

const deploys = '/admin/deploy-request';
const vpns = '/admin/vpn-request';
type Deploy = Row<typeof deploys>;
type VPN = Row<typeof vpns>;

const statuses = ['PENDING', 'APPROVED', 'REJECTED', 'ALL'] as const;
const decisions = ['APPROVED', 'REJECTED'] as const;
const titles = { APPROVED: 'request.approve', REJECTED: 'request.reject' };
const colours = { APPROVED: 'green', REJECTED: 'red' };

/** The columns of both; a request is a record of either. */
function people<T extends Deploy | VPN>(): Column<T>[] {
  return [
    { key: 'requestor_userid', title: 'request.by', show: (r) => <Id of={r.requestor_userid} short /> },
    { key: 'created_at', title: 'request.at', show: (r) => <Time at={r.created_at} /> },
    { key: 'status', title: 'request.status', show: (r) => <Status of={r.status} /> },
    {
      key: 'approver_rejection_userid',
      title: 'request.decider',
      show: (r) => <Id of={r.approver_rejection_userid} short />,
      hidden: true,
    },
    { key: 'updated_at', title: 'request.changed', show: (r) => <Time at={r.updated_at} />, hidden: true },
  ] as Column<T>[];
}

const deployColumns: Column<Deploy>[] = [
  { key: 'service_name', title: 'request.service', show: (d) => <bdi dir="ltr">{d.service_name}</bdi> },
  { key: 'build_number', title: 'request.build', show: (d) => <bdi dir="ltr">{d.build_number}</bdi> },
  { key: 'type', title: 'request.type' },
  { key: 'comment', title: 'request.comment' },
  { key: 'duration_minutes', title: 'request.minutes' },
  { key: 'original_service_name', title: 'request.original', hidden: true },
  ...people<Deploy>(),
];

const vpnColumns: Column<VPN>[] = [
  { key: 'user_name', title: 'request.login', show: (v) => <bdi dir="ltr">{v.user_name}</bdi> },
  {
    key: 'name',
    title: 'request.name',
    show: (v) => (
      <bdi>
        {v.name} {v.surname}
      </bdi>
    ),
  },
  { key: 'type', title: 'request.type' },
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

export default function Requests() {
  return (
    <Sheets
      label="request.title"
      sheets={[
        { name: 'deploy', title: 'request.deploys', needs: `GET ${deploys}`, show: () => <Deploys /> },
        { name: 'vpn', title: 'request.vpns', needs: `GET ${vpns}`, show: () => <VPNs /> },
      ]}
    />
  );
}

function Deploys() {
  const [open, setOpen] = useState<Deploy>();
  const close = () => setOpen(undefined);
  const change = '/admin/update-deploy-request';
  return (
    <>
      <List
        path={deploys}
        title="request.deploys"
        columns={deployColumns}
        filters={deployFilters}
        id={(d) => String(d.id)}
        open={setOpen}
        empty="request.none"
        actions={
          <Write
            method="post"
            path={deploys}
            title="request.askDeploy"
            touches={[deploys]}
            fields={[
              { name: 'service_name', title: 'request.service', required: true },
              { name: 'original_service_name', title: 'request.original', required: true },
              { name: 'build_number', title: 'request.build', required: true },
              { name: 'duration_minutes', title: 'request.minutes', required: true, kind: 'number' },
              { name: 'type', title: 'request.type', required: true },
              { name: 'comment', title: 'request.comment', required: true, kind: 'area' },
            ]}
          />
        }
        bulk={(rows, clear) => (
          <Decide
            path={change}
            touches={deploys}
            rows={rows}
            onDone={clear}
            name={(d) => (
              <bdi dir="ltr">
                {d.service_name} {d.build_number}
              </bdi>
            )}
          />
        )}
      />
      <Whole of={open} title="request.one" onClose={close}>
        {open && (
          <>
            <Own of={open} />
            <Group>
              <Decide
                path={change}
                touches={deploys}
                rows={[open]}
                onDone={close}
                name={(d) => (
                  <bdi dir="ltr">
                    {d.service_name} {d.build_number}
                  </bdi>
                )}
              />
              <Write
                method="post"
                path={change}
                title="request.change"
                touches={[deploys]}
                onDone={close}
                fixed={{ id: open.id }}
                initial={open}
                fields={[
                  { name: 'service_name', title: 'request.service', required: true },
                  { name: 'original_service_name', title: 'request.original', required: true },
                  { name: 'build_number', title: 'request.build', required: true },
                  { name: 'duration_minutes', title: 'request.minutes', required: true, kind: 'number' },
                  { name: 'status', title: 'request.status', required: true, kind: statuses.slice(0, 3) },
                  { name: 'comment', title: 'request.comment', required: true, kind: 'area' },
                ]}
              />
            </Group>
          </>
        )}
      </Whole>
    </>
  );
}

function VPNs() {
  const [open, setOpen] = useState<VPN>();
  const close = () => setOpen(undefined);
  const change = '/admin/update-vpn-request';
  const name = (v: VPN) => (
    <bdi dir="ltr">
      {v.user_name} · {v.type}
    </bdi>
  );
  return (
    <>
      <List
        path={vpns}
        title="request.vpns"
        columns={vpnColumns}
        filters={vpnFilters}
        id={(v) => String(v.id)}
        open={setOpen}
        empty="request.none"
        actions={
          <Write
            method="post"
            path={vpns}
            title="request.askVpn"
            touches={[vpns]}
            fields={[
              { name: 'userId', title: 'request.by', required: true, help: 'request.byHelp' },
              { name: 'user_name', title: 'request.login', required: true },
              { name: 'type', title: 'request.type', required: true },
              { name: 'comment', title: 'request.comment', kind: 'area' },
            ]}
          />
        }
        bulk={(rows, clear) => <Decide path={change} touches={vpns} rows={rows} name={name} onDone={clear} />}
      />
      <Whole of={open} title="request.one" onClose={close}>
        {open && (
          <>
            <Own of={open} />
            <Group>
              <Decide path={change} touches={vpns} rows={[open]} name={name} onDone={close} />
              <Write
                method="post"
                path={change}
                title="request.change"
                touches={[vpns]}
                onDone={close}
                fixed={{ id: open.id }}
                initial={open}
                fields={[
                  { name: 'user_name', title: 'request.login', required: true },
                  { name: 'status', title: 'request.status', required: true, kind: statuses.slice(0, 3) },
                  { name: 'comment', title: 'request.comment', kind: 'area' },
                ]}
              />
            </Group>
          </>
        )}
      </Whole>
    </>
  );
}

/** The service lets people decide on what they asked for themselves; the screen says so. */
function Own({ of }: { of: Deploy | VPN }) {
  const { t } = useTranslation();
  const { userId } = useSession();
  return of.requestor_userid === userId && of.status === 'PENDING' ? (
    <Alert color="yellow">{t('request.own')}</Alert>
  ) : null;
}

/** Approve and reject, with a comment that takes the place of the request's own where one is written. */
function Decide<T extends Deploy | VPN>({
  path,
  touches,
  rows,
  name,
  onDone,
}: {
  path: '/admin/update-deploy-request' | '/admin/update-vpn-request';
  touches: string;
  rows: T[];
  name: (row: T) => React.ReactNode;
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
