/** The rules of the money policy, each as a sentence. Changes and deletions wait for another administrator. */
import { Button, Text } from '@mantine/core';
import type { TFunction } from 'i18next';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { Schemas } from '../app/api';
import { useAct } from '../app/act';
import { Problem } from '../app/problem';
import { useMay } from '../app/session';
import { Administered } from '../kit/administered';
import { Bulk } from '../kit/bulk';
import type { Column, Row } from '../kit/list';
import { Nothing, Status, Time } from '../kit/show';
import { Word } from '../kit/word';
import { Write, type Input } from '../kit/write';
import { Rehearsal } from './rehearsal';
import { Answer, type Explanation } from './verdict';

const path = '/admin/money/rules';
const explain = '/admin/money/explain';
type Rule = Row<typeof path>;
type Draft = Schemas['AddMoneyRulesRequest'];
type Effect = NonNullable<Draft['effect']>;
/** The fields of the form: those of a rule, with its devices and those of its effect beside them. */
type Form = Omit<Draft, 'rules' | 'effect'> & Omit<Effect, 'type'> & { type?: string; device?: string[] };

const statuses = ['ACTIVE', 'TRIAL', 'INACTIVE'] as const;
const kinds = ['WITHDRAWAL', 'DEPOSIT', 'ADJUSTMENT', 'DECISION', 'SETTING'] as const;
const devices = ['NEW', 'KNOWN', 'REMEMBERED', 'NONE'] as const;
const effects = ['APPROVAL', 'WAIT', 'DENY', 'OWNER'] as const;
const starts = ['REQUEST', 'CREDENTIALS', 'CREDIT', 'DESTINATION'] as const;

/** A condition and its value in words. Those without words of their own are shown as they are sent. */
function condition(t: TFunction, name: string, value: unknown): string {
  const v = value as Record<string, string>;
  if (name === 'amount') return t('policy.if.amount', { over: v.over, unit: v.unit === 'TRY' ? 'TRY' : '' }).trim();
  if (name === 'hours') return t('policy.if.hours', { from: v.from, to: v.to, zone: v.zone });
  if (typeof value === 'boolean') return t(`policy.if.${name}.${value}`, { defaultValue: name });
  const one = (x: unknown) =>
    typeof x === 'object' && x
      ? Object.values(x).join(' ')
      : t(`policy.word.${String(x)}`, { defaultValue: String(x) });
  const shown = Array.isArray(value) ? value.map(one).join(', ') : one(value);
  return t(`policy.if.${name}`, { defaultValue: shown, shown });
}

/** A rule as one sentence: its kinds, its conditions and its effect. */
function sentence(t: TFunction, language: string, r: Rule): string {
  const list = new Intl.ListFormat(language);
  const { destination, account, initiator, sums, ...match } = r.match;
  const conditions = [
    ...Object.entries({ ...match, ...destination, ...account, ...initiator }).map(([k, v]) => condition(t, k, v)),
    ...(sums ?? []).map((s) =>
      t('policy.if.sum', {
        over: s.over,
        window: s.window,
        of: t(`policy.word.${s.of ?? 'VALUE'}`),
        per: t(`policy.word.${s.per ?? 'ACCOUNT'}`),
      }),
    ),
  ];
  const e = r.effect;
  return t(conditions.length ? 'policy.sentence' : 'policy.always', {
    kinds: list.format(r.kinds.map((k) => t(`policy.kind.${k}`))),
    conditions: list.format(conditions),
    effect: t(`policy.effect.${e.type ?? 'DENY'}`, {
      group: e.group,
      count: e.required ?? 0,
      for: e.for,
      after: t(`policy.after.${e.after ?? 'REQUEST'}`),
    }),
  });
}

function Sentence({ of }: { of: Rule }) {
  const { t, i18n } = useTranslation();
  return <bdi>{sentence(t, i18n.language, of)}</bdi>;
}

const columns: Column<Rule>[] = [
  { key: 'label', title: 'firewall.label', show: (r) => <bdi>{r.label}</bdi> },
  { key: 'effect', title: 'policy.rule', show: (r) => <Sentence of={r} />, text: (r) => JSON.stringify(r.effect) },
  { key: 'status', title: 'firewall.status', card: 'top', show: (r) => <Status of={r.status} /> },
  {
    key: 'expiresAt',
    title: 'firewall.expireAt',
    show: (r) => (r.expiresAt ? <Time at={r.expiresAt} /> : <Word of="firewall.never" />),
  },
  {
    key: 'hits',
    title: 'policy.hits',
    card: 'end',
    end: true,
    show: (r) => (r.hits === null ? <Nothing /> : <bdi dir="ltr">{r.hits}</bdi>),
    text: (r) => String(r.hits ?? ''),
  },
  { key: 'version', title: 'policy.version', hidden: true },
];

export default function Policy() {
  const { t } = useTranslation();
  const [answer, setAnswer] = useState<Explanation>();
  return (
    <>
      <Administered
        path={path}
        title="policy.title"
        empty="policy.none"
        next={{ title: 'firewall.add', form: 'policy.add', needs: `POST ${path}` }}
        columns={columns}
        id={(r) => r.label}
        filters={[{ name: 'status', title: 'firewall.status', kind: statuses }]}
        actions={
          <>
            <Explain onDone={setAnswer} />
            <Add />
          </>
        }
        one="policy.rule"
        lead="policy.second"
        curl={(r) => ({ method: 'POST', path, body: r })}
        change={{ title: 'firewall.change', needs: `PATCH ${path}`, testid: 'policy-change' }}
        form={(r, close) => <Change rule={r} onClose={close} />}
        acts={(r, close) => (
          <>
            <Switch rule={r} onDone={close} />
            <Bulk
              method="delete"
              path={path}
              title="gateway.remove"
              go="gateway.remove"
              rows={[r]}
              touches={[path]}
              onDone={close}
              name={(row) => <bdi>{row.label}</bdi>}
              body={(row) => ({ label: row.label })}
              button={{ color: 'red', variant: 'light' }}
            >
              <Text size="sm">{t('policy.second')}</Text>
            </Bulk>
          </>
        )}
      />
      {answer && <Answer of={answer} lead="policy.explained" />}
    </>
  );
}

/** Puts a rule on trial, or in force, without a form. */
function Switch({ rule, onDone }: { rule: Rule; onDone: () => void }) {
  const { t } = useTranslation();
  const may = useMay();
  const act = useAct('patch', path, [path]);
  if (!may(`PATCH ${path}`)) return null;
  const status = rule.status === 'ACTIVE' ? 'TRIAL' : 'ACTIVE';
  const set = async () => {
    if (await act.run({ label: rule.label, version: rule.version, status })) onDone();
  };
  return (
    <>
      <Button size="xs" variant="default" loading={act.busy} onClick={() => void set()} data-testid="policy-status">
        {t(`policy.to.${status}`)}
      </Button>
      <Problem of={act.problem} />
      {act.view}
    </>
  );
}

function useFields(): Input<Form>[] {
  const { t } = useTranslation();
  const named = <N extends string>(area: 'kind' | 'type' | 'after' | 'word', all: readonly N[]) =>
    all.map((value) => ({ value, label: t(`policy.${area}.${value}` as 'policy.kind.DEPOSIT') }));
  const is =
    (...types: string[]) =>
    (v: Record<string, unknown>) =>
      types.includes(String(v.type));
  return [
    { name: 'label', title: 'firewall.label', required: true },
    { name: 'status', title: 'firewall.status', required: true, kind: statuses },
    { name: 'kinds', title: 'policy.kinds', required: true, kind: { many: named('kind', kinds) } },
    {
      name: 'device',
      title: 'policy.device',
      kind: { many: named('word', devices) },
      when: ({ kinds: all }) => Array.isArray(all) && all.length === 1 && all[0] === 'WITHDRAWAL',
    },
    { name: 'match', title: 'policy.match', kind: 'json', help: 'policy.matchHelp' },
    { name: 'except', title: 'policy.except', kind: 'json', help: 'policy.exceptHelp' },
    { name: 'type', title: 'policy.effect', required: true, kind: named('type', effects) },
    { name: 'group', title: 'policy.group', required: true, when: is('APPROVAL') },
    { name: 'required', title: 'policy.required', kind: 'number', when: is('APPROVAL', 'OWNER') },
    { name: 'expires', title: 'policy.expires', help: 'policy.span', when: is('APPROVAL') },
    { name: 'for', title: 'policy.for', help: 'policy.span', required: true, when: is('WAIT') },
    { name: 'after', title: 'policy.after', required: true, when: is('WAIT'), kind: named('after', starts) },
    { name: 'phishingResistant', title: 'policy.resistant', kind: 'flag', when: is('OWNER') },
    { name: 'expiresAt', title: 'firewall.expireAt', kind: 'date', help: 'firewall.expireHelp' },
  ];
}

/** The input as a request. */
function bodyOf(values: Form): Draft {
  const { type, group, required, expires, for: wait, after, phishingResistant, device, match, ...rule } = values;
  const effect = { type, group, required, expires, for: wait, after, phishingResistant } as Effect;
  return { except: {}, ...rule, match: device?.length ? { ...match, device } : { ...match }, effect } as Draft;
}

/** The input as a rule to rehearse; undefined while it is incomplete. */
function ruleOf(values: Partial<Form>): Draft | undefined {
  const { label, status, kinds, type, group, for: wait, after } = values;
  const effect = type === 'APPROVAL' ? group : type === 'WAIT' ? wait && after : type;
  return label && status && kinds?.length && effect ? bodyOf(values) : undefined;
}

function Add() {
  return (
    <Write
      method="post"
      path={path}
      title="policy.add"
      button={{ variant: 'filled' }}
      touches={[path]}
      fields={useFields()}
      initial={{ status: 'TRIAL', kinds: ['WITHDRAWAL'], type: 'APPROVAL', required: 1 }}
      make={(values: Form) => bodyOf(values)}
      before={(values) => <Rehearsal rule={ruleOf(values)} />}
    />
  );
}

function Change({ rule, onClose }: { rule: Rule; onClose: () => void }) {
  const { t } = useTranslation();
  const { label, version, effect, expiresAt, match, status, kinds, except } = rule;
  const { device, ...conditions } = match;
  const day = expiresAt?.slice(0, 10);
  return (
    <Write
      method="patch"
      path={path}
      title="firewall.change"
      touches={[path]}
      opened
      onClose={onClose}
      record={label}
      fields={useFields().filter(({ name }) => name !== 'label')}
      initial={{ status, kinds, except, match: conditions, device, ...effect, expiresAt: day }}
      make={(values: Form) => ({
        ...bodyOf(values),
        label,
        version,
        expiresAt: values.expiresAt === day ? expiresAt : (values.expiresAt ?? null),
      })}
      before={(values) => (
        <>
          <Text size="xs" c="dimmed">
            {t('policy.second')}
          </Text>
          <Rehearsal rule={ruleOf({ ...values, label })} />
        </>
      )}
    />
  );
}

interface Question {
  kind: Schemas['PolicyFactsInput']['kind'];
  currencyCode?: string;
  network?: string;
  amount?: string;
  value?: string;
  by: Schemas['InitiatorFactsInput']['type'];
  facts?: object;
}

/** Asks which rules would decide about a movement. */
function Explain({ onDone }: { onDone: (answer: Explanation) => void }) {
  const { t } = useTranslation();
  return (
    <Write
      method="post"
      path={explain}
      title="policy.explain"
      initial={{ kind: 'WITHDRAWAL', by: 'USER' }}
      fields={[
        {
          name: 'kind',
          title: 'policy.kinds',
          required: true,
          kind: kinds.map((value) => ({ value, label: t(`policy.kind.${value}`) })),
        },
        { name: 'currencyCode', title: 'money.currency' },
        { name: 'network', title: 'money.network' },
        { name: 'amount', title: 'money.amount', kind: 'money' },
        { name: 'value', title: 'policy.value', kind: 'money', help: 'policy.valueHelp' },
        {
          name: 'by',
          title: 'policy.by',
          required: true,
          kind: ['USER', 'OPERATOR', 'SERVICE'].map((value) => ({
            value,
            label: t(`policy.word.${value}` as 'policy.word.USER'),
          })),
        },
        { name: 'facts', title: 'policy.facts', kind: 'json', help: 'policy.factsHelp' },
      ]}
      make={({ kind, currencyCode, network, amount, value, by, facts }: Question) => ({
        facts: {
          kind,
          asset: { currencyCode, network },
          amount: amount && String(amount),
          value: value && String(value),
          initiator: { type: by },
          device: 'NONE' as const,
          ...facts,
        },
      })}
      onDone={(answer) => onDone((answer as { data: Explanation }).data)}
    />
  );
}
