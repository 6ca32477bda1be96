/** MFA methods, actions and policies. */
import { Button, Tabs } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useAct } from '../app/act';
import { useTexts } from '../app/address';
import type { Schemas } from '../app/api';
import { Problem } from '../app/problem';
import { session, useMay } from '../app/session';
import { AnchorLink } from '../app/frame/link';
import { Administered } from '../kit/administered';
import type { Column, Row } from '../kit/list';
import { useRead } from '../kit/read';
import { Diff } from '../kit/record';
import { useNow } from '../kit/now';
import { Coded, Status, Time } from '../kit/show';
import { useSure } from '../kit/sure';
import { Word } from '../kit/word';
import { Write, type Input } from '../kit/write';
import { PolicyRehearsal } from '../guard/rehearsal';
import { policyAsks } from '../guard/toll';
import type { TextKey } from '../text/key';

const methodsPath = '/admin/system/mfa/methods';
const actionsPath = '/admin/system/mfa/actions';
const policiesPath = '/admin/system/mfa/policies';
const common = '/admin/system/mfa/policies/common';
type Method = Row<typeof methodsPath>;
type Action = Row<typeof actionsPath>;
type Policy = Row<typeof policiesPath>;
type Draft = Schemas['AddMfaPolicyRequest'];
type Change = Schemas['UpdateMfaPolicyRequest'];
/** The values of the form of a policy: methods by their codes. */
type Form = Partial<Omit<Draft, 'methods'>> & { id?: Change['id']; methods?: string[] };

export default function Mfa() {
  const { t } = useTranslation();
  const may = useMay();
  const navigate = useNavigate();
  const { tab = 'policies' } = useTexts();
  return (
    <Tabs
      variant="pills"
      value={tab}
      keepMounted={false}
      onChange={(next) => void navigate({ to: '.', search: { tab: next ?? undefined } })}
    >
      <Tabs.List mb="md">
        <Tabs.Tab value="policies">{t('mfa.policies')}</Tabs.Tab>
        {may(`GET ${actionsPath}`) && (
          <Tabs.Tab value="actions" data-testid="tab-actions">
            {t('mfa.actions')}
          </Tabs.Tab>
        )}
        {may(`GET ${methodsPath}`) && (
          <Tabs.Tab value="methods" data-testid="tab-methods">
            {t('mfa.methods')}
          </Tabs.Tab>
        )}
      </Tabs.List>
      <Tabs.Panel value="policies">
        <Policies />
      </Tabs.Panel>
      <Tabs.Panel value="actions">
        <Actions />
      </Tabs.Panel>
      <Tabs.Panel value="methods">
        <Methods />
      </Tabs.Panel>
    </Tabs>
  );
}

const policyColumns: Column<Policy>[] = [
  { key: 'actionCode', title: 'mfa.action', show: (p) => <Coded of={p.actionCode} /> },
  { key: 'name', title: 'mfa.name' },
  { key: 'entityType', title: 'mfaWhy.entity', show: (p) => <Status of={p.entityType} /> },
  {
    key: 'detail',
    title: 'mfa.needs',
    show: (p) => (
      <Word
        of="mfa.ofMethods"
        required={p.detail.required}
        methods={p.detail.methods.map(([code]) => code).join(', ')}
      />
    ),
  },
  { key: 'expireAt', title: 'mfa.expireAt', show: (p) => <Expires at={p.expireAt} /> },
];

/** The end of a policy; one that has ended applies no more. */
function Expires({ at }: { at: number }) {
  const { t } = useTranslation();
  const now = useNow(1000);
  if (!at) return t('firewall.never');
  return at > now ? <Time at={at} /> : <Status of="EXPIRED" />;
}

function Policies() {
  const { t } = useTranslation();
  const may = useMay();
  return (
    <Administered
      path={policiesPath}
      title="mfa.title"
      empty="mfa.noPolicies"
      columns={policyColumns}
      id={(p) => String(p.id)}
      actions={
        <>
          {may('POST /admin/system/mfa/explain') && (
            <AnchorLink to="/mfa/explain" size="sm">
              {t('mfaWhy.title')}
            </AnchorLink>
          )}
          {may(`POST ${common}`) && <AddPolicy />}
        </>
      }
      one="mfa.policy"
      curl={(p) => ({ method: 'POST', path: common, body: draftOf(p) })}
      change={{
        title: 'mfa.change',
        needs: `PATCH ${common}`,
        testid: 'policy-change',
        when: (p) => p.entityType === 'GENERAL',
      }}
      form={(p, close) => <ChangePolicy policy={p} onClose={close} />}
      acts={(p, close) => (
        <>
          {p.entityType === 'GENERAL' && <Ends policy={p} onDone={close} />}
          {may('POST /admin/system/mfa/explain') && (
            <AnchorLink to="/mfa/explain" size="sm" search={{ actionCode: p.actionCode }}>
              {t('why.mfa')}
            </AnchorLink>
          )}
        </>
      )}
    />
  );
}

/** Disables a policy by its end, enables it again, and deletes it. */
function Ends({ policy, onDone }: { policy: Policy; onDone: () => void }) {
  const { t } = useTranslation();
  const may = useMay();
  const sure = useSure();
  const patch = useAct('patch', common, [policiesPath]);
  const remove = useAct('delete', common, [policiesPath]);
  const [asking, setAsking] = useState(false);
  const busy = patch.busy || remove.busy || asking;
  const now = useNow(1000);
  const on = !policy.expireAt || policy.expireAt > now;
  const state: TextKey = on ? 'firewall.off' : 'firewall.on';
  const run = async (title: TextKey, expireAt: number, always?: string) => {
    setAsking(true);
    const draft = { ...short(draftOf(policy)), expireAt };
    const asks = await policyAsks(t, title, draft, always).finally(() => setAsking(false));
    if (asks && !(await sure.ask(asks.question))) return;
    const force = asks?.force ? { force: true } : {};
    const done = always
      ? await remove.run({ id: policy.id, ...force })
      : await patch.run({ id: policy.id, expireAt, ...force });
    if (done) onDone();
  };
  return (
    <>
      {may(`PATCH ${common}`) && (
        <Button
          size="xs"
          variant="default"
          loading={busy}
          data-testid="policy-state"
          onClick={() => void run(state, on ? Date.now() - session.now().skew : 0)}
        >
          {t(state)}
        </Button>
      )}
      {may(`DELETE ${common}`) && (
        <Button
          size="xs"
          variant="default"
          color="red"
          loading={busy}
          data-testid="policy-delete"
          onClick={() => void run('mfa.delete', 1, t('mfa.deleted', { name: policy.name }))}
        >
          {t('mfa.delete')}
        </Button>
      )}
      <Problem of={patch.problem ?? remove.problem} />
      {patch.view}
      {remove.view}
      {sure.view}
    </>
  );
}

function useFields(): Input<Draft>[] {
  const may = useMay();
  const methods = useRead(methodsPath, undefined, { enabled: may(`GET ${methodsPath}`) });
  const actions = useRead(actionsPath, undefined, { enabled: may(`GET ${actionsPath}`) });
  return [
    { name: 'actionCode', title: 'mfa.action', required: true, kind: actions.data?.map((a) => a.actionCode) ?? 'text' },
    { name: 'name', title: 'mfa.name', required: true },
    {
      name: 'methods',
      title: 'mfa.methods',
      required: true,
      help: 'mfa.methodsHelp',
      kind: methods.data ? { many: methods.data.map((m) => m.methodCode) } : 'list',
    },
    { name: 'required', title: 'mfa.required', kind: 'number', required: true, help: 'mfa.requiredHelp' },
    { name: 'numberMatching', title: 'mfa.numbers', kind: 'flag', help: 'mfa.numbersHelp' },
    { name: 'phishingResistant', title: 'mfa.resistant', kind: 'flag', help: 'mfa.resistantHelp' },
    { name: 'passkeyAlone', title: 'mfa.passkeyAlone', kind: 'flag', help: 'mfa.passkeyAloneHelp' },
    { name: 'remember', title: 'mfa.remember', kind: 'number', help: 'mfa.rememberHelp' },
    { name: 'rememberAnyway', title: 'mfa.rememberAnyway', kind: 'flag', help: 'mfa.rememberAnywayHelp' },
    { name: 'expireAt', title: 'mfa.expireAt', kind: 'date', help: 'firewall.expireHelp' },
  ];
}

const flags = ['numberMatching', 'phishingResistant', 'passkeyAlone', 'rememberAnyway'] as const;

/** A draft without the options that are off, as the service shows a policy. */
function short(d: Draft): Draft {
  const off = (value: unknown) => value === false || value === 0 || value === undefined;
  const named = ([name, value]: [string, unknown]) => ![...flags, 'remember'].includes(name) || !off(value);
  return Object.fromEntries(Object.entries(d).filter(named)) as Draft;
}

/** Methods are chosen by their codes; a method keeps its template. */
function draft(values: Form, before?: Policy): Draft {
  const codes = values.methods ?? [];
  const tuple = (code: string) => before?.detail.methods.find(([c]) => c === code) ?? [code];
  return { ...values, methods: codes.map(tuple), expireAt: values.expireAt ?? 0 } as Draft;
}

function complete(d: Draft): Draft | undefined {
  return d.actionCode && d.name && d.required && d.methods.length ? { ...d, expireAt: d.expireAt || 0 } : undefined;
}

function Tried({ policy }: { policy: Draft }) {
  const may = useMay();
  const whole = complete(policy);
  return may('POST /admin/system/mfa/rehearse') && whole ? <PolicyRehearsal policy={whole} /> : null;
}

function AddPolicy() {
  const { t } = useTranslation();
  return (
    <Write
      method="post"
      path={common}
      title="mfa.addPolicy"
      button={{ variant: 'filled' }}
      touches={[policiesPath]}
      fields={useFields()}
      initial={{ required: 1 }}
      make={(v: Form) => short(draft(v))}
      asks={(policy) => policyAsks(t, 'mfa.addPolicy', policy)}
      before={(v) => <Tried policy={short(draft(v))} />}
    />
  );
}

function draftOf(p: Policy): Draft {
  const { actionCode, name, expireAt, phishingResistant, passkeyAlone, remember, rememberAnyway } = p;
  return { actionCode, name, expireAt, ...p.detail, phishingResistant, passkeyAlone, remember, rememberAnyway };
}

function ChangePolicy({ policy, onClose }: { policy: Policy; onClose: () => void }) {
  const { t } = useTranslation();
  const before = short(draftOf(policy));
  const codes = policy.detail.methods.map(([code = '']) => code);
  const day = policy.expireAt ? new Date(policy.expireAt).toISOString().slice(0, 10) : undefined;
  const make = (v: Form) => {
    const next = draft({ ...v, expireAt: v.expireAt === day ? policy.expireAt : (v.expireAt ?? 0) }, policy);
    return { ...next, remember: v.remember ?? 0, ...Object.fromEntries(flags.map((f) => [f, v[f] === true])) };
  };
  return (
    <Write
      method="patch"
      path={common}
      title="mfa.change"
      touches={[policiesPath]}
      opened
      onClose={onClose}
      fixed={{ id: policy.id }}
      fields={useFields().filter(({ name }) => name !== 'actionCode')}
      initial={{
        name: policy.name,
        methods: codes,
        required: policy.detail.required,
        numberMatching: policy.detail.numberMatching,
        phishingResistant: policy.phishingResistant,
        passkeyAlone: policy.passkeyAlone,
        remember: policy.remember,
        rememberAnyway: policy.rememberAnyway,
        expireAt: day,
      }}
      make={(v: Form) => ({ ...make(v), id: policy.id })}
      asks={({ id: _, ...changes }) => policyAsks(t, 'mfa.change', short({ ...before, ...changes }))}
      before={(v) => {
        const next = short({ ...before, ...make(v) });
        return (
          <>
            <Diff before={before} after={next} />
            <Tried policy={next} />
          </>
        );
      }}
    />
  );
}

const actionColumns: Column<Action>[] = [
  { key: 'actionCode', title: 'mfa.action', show: (a) => <Coded of={a.actionCode} /> },
  { key: 'title', title: 'mfa.texts', show: (a) => <bdi>{Object.values(a.title).join(' · ')}</bdi> },
];

function Actions() {
  const texts: Input<Omit<Schemas['AddMfaActionRequest'], 'actionCode'>>[] = [
    { name: 'title', title: 'mfa.texts', kind: 'json', required: true, help: 'mfa.textsHelp' },
    { name: 'infoTableHeaders', title: 'mfa.headers', kind: 'json', required: true, help: 'mfa.headersHelp' },
  ];
  return (
    <Administered
      path={actionsPath}
      title="mfa.actions"
      columns={actionColumns}
      id={(a) => a.actionCode}
      filters={[{ name: 'actionCode', title: 'mfa.action' }]}
      actions={
        <Write
          method="post"
          path={actionsPath}
          title="mfa.addAction"
          button={{ variant: 'filled' }}
          touches={[actionsPath]}
          initial={{ title: { en: '', tr: '', ar: '' }, infoTableHeaders: {} }}
          fields={[{ name: 'actionCode', title: 'mfa.action', required: true }, ...texts]}
        />
      }
      one="mfa.action"
      curl={(body) => ({ method: 'POST', path: actionsPath, body })}
      change={{ title: 'mfa.change', needs: `PATCH ${actionsPath}`, testid: 'action-change' }}
      form={(change, close) => (
        <Write
          method="patch"
          path={actionsPath}
          title="mfa.change"
          touches={[actionsPath]}
          opened
          onClose={close}
          fixed={{ actionCode: change.actionCode }}
          initial={change}
          fields={texts}
        />
      )}
    />
  );
}

const methodColumns: Column<Method>[] = [
  { key: 'methodCode', title: 'mfa.method', show: (m) => <bdi dir="ltr">{m.methodCode}</bdi> },
  { key: 'expireMs', title: 'mfa.lives', show: (m) => <Seconds of={m.expireMs} none="mfa.asChallenge" /> },
  { key: 'renewStartMs', title: 'mfa.renews', show: (m) => <Seconds of={m.renewStartMs} none="mfa.noRenewal" /> },
];

function Seconds({ of, none }: { of: number; none: TextKey }) {
  const { t } = useTranslation();
  return of ? t('mfa.seconds', { count: of / 1000 }) : t(none);
}

function Methods() {
  const times: Input<Omit<Schemas['AddMfaMethodRequest'], 'methodCode'>>[] = [
    { name: 'expireMs', title: 'mfa.livesMs', kind: 'number', required: true, help: 'mfa.livesHelp' },
    { name: 'renewStartMs', title: 'mfa.renewsMs', kind: 'number', required: true, help: 'mfa.renewsHelp' },
  ];
  return (
    <Administered
      path={methodsPath}
      title="mfa.methods"
      columns={methodColumns}
      id={(m) => m.methodCode}
      filters={[{ name: 'methodCode', title: 'mfa.method' }]}
      actions={
        <Write
          method="post"
          path={methodsPath}
          title="mfa.addMethod"
          button={{ variant: 'filled' }}
          touches={[methodsPath]}
          fields={[{ name: 'methodCode', title: 'mfa.method', required: true }, ...times]}
        />
      }
      one="mfa.method"
      curl={(body) => ({ method: 'POST', path: methodsPath, body })}
      change={{ title: 'mfa.change', needs: `PATCH ${methodsPath}`, testid: 'method-change' }}
      form={(change, close) => (
        <Write
          method="patch"
          path={methodsPath}
          title="mfa.change"
          touches={[methodsPath]}
          opened
          onClose={close}
          fixed={{ methodCode: change.methodCode }}
          initial={change}
          fields={times}
          before={(v) => <Diff before={change} after={{ ...change, ...v }} />}
        />
      )}
    />
  );
}
