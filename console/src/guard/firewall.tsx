/** The rules of the firewall. A new rule starts on trial and shows what it would have blocked. */
import { Anchor, Autocomplete, Badge, Button, Group, Text } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { Schemas } from '../app/api';
import { useAct } from '../app/act';
import { Problem } from '../app/problem';
import { useMay } from '../app/session';
import { useAddress } from '../app/address';
import { Administered } from '../kit/administered';
import type { Column, Row } from '../kit/list';
import { useNow } from '../kit/now';
import { useRead } from '../kit/read';
import { Coded, Nothing, Status, textOf, Time } from '../kit/show';
import { useSure } from '../kit/sure';
import { Write, type Custom, type Input } from '../kit/write';
import { Counters } from './counters';
import { RuleRehearsal } from './rehearsal';
import { ruleAsks } from './toll';
import { Word } from '../kit/word';
import type { TextKey } from '../text/key';

const path = '/admin/system/waf/rules';
type Rule = Row<typeof path>;
type Draft = Schemas['AddFirewallRuleRequest'];
/** The limit of another service (POST /limit) is a type of its own here: a rate limit of resources LIMIT <name>. */
const serviceLimit = 'service_limit';
const limitPrefix = 'LIMIT ';
const isLimit = (resource: string) => resource.startsWith(limitPrefix);
/** The period in the form: a number and its unit. On the wire it is in milliseconds. */
type Form = Omit<Draft, 'type'> & { type: Draft['type'] | typeof serviceLimit; unit: string };

const unitsMs = [86_400_000, 3_600_000, 60_000, 1000, 1] as const;
type Unit = (typeof unitsMs)[number];

const types = ['rate_limit', 'whitelist', 'blacklist', 'whitelist_force', serviceLimit] as const;

/** The type of a rule in the form and in the list. */
const typeOf = ({ type, targetResources }: Pick<Draft, 'type' | 'targetResources'>) =>
  targetResources?.length && targetResources.every(isLimit) ? serviceLimit : type;

/** The names of the limits of a service. */
const namesOf = (rule: Pick<Draft, 'targetResources'>) =>
  (rule.targetResources ?? []).map((resource) => resource.slice(limitPrefix.length));

const entities = ['USER_ID', 'IP', 'COUNTRY_CODE', 'APP_ID'] as const;
type Entity = (typeof entities)[number];

const columns: Column<Rule>[] = [
  { key: 'label', title: 'firewall.label', show: (r) => <Coded of={r.label} /> },
  {
    key: 'type',
    title: 'firewall.type',
    card: 'start',
    show: (r) => (
      <span className="whole">
        <Word of={`firewall.type.${typeOf(r)}`} />
      </span>
    ),
  },
  {
    key: 'status',
    title: 'firewall.status',
    card: 'top',
    show: (r) => (
      <Group gap={4} wrap="nowrap">
        <InForce rule={r} />
        {r.dryRun && (
          <Badge color="yellow" variant="light" tt="none" miw="max-content">
            <Word of="firewall.trial" />
          </Badge>
        )}
      </Group>
    ),
  },
  {
    key: 'targetEntities',
    title: 'firewall.entities',
    show: (r) => (
      <Targets
        all={r.targetAllEntities}
        of={r.targetEntities}
        kind={entityKey(r.targetEntityType, typeOf(r) === serviceLimit)}
      />
    ),
  },
  {
    key: 'targetResources',
    title: 'firewall.resources',
    show: (r) => (
      <Targets
        all={r.targetAllResources}
        of={typeOf(r) === serviceLimit ? namesOf(r).map((name) => `${r.appId}: ${name}`) : r.targetResources}
      />
    ),
  },
  {
    key: 'limit',
    title: 'firewall.limit',
    show: (r) =>
      r.limit && r.period ? (
        <span className="whole">
          <Word of="firewall.per" limit={r.limit} seconds={r.period / 1000} />
        </span>
      ) : (
        <Nothing />
      ),
  },
  {
    key: 'expireAt',
    title: 'firewall.expireAt',
    show: (r) => (r.expireAt ? <Time at={r.expireAt} /> : <Word of="firewall.never" />),
  },
  { key: 'appId', title: 'firewall.app', hidden: true },
];

/** The status of a rule. An active rule has none once it has expired. */
function InForce({ rule: { status, expireAt } }: { rule: Rule }) {
  const now = useNow(60_000);
  return <Status of={status === 'ACTIVE' && expireAt && expireAt < now ? 'EXPIRED' : status} />;
}

export default function Firewall() {
  const { t } = useTranslation();
  const may = useMay();
  const [search, setSearch] = useAddress();
  return (
    <>
      <Administered
        path={path}
        title="firewall.title"
        empty="firewall.none"
        next={{ title: 'firewall.add', form: 'firewall.add', needs: `POST ${path}` }}
        columns={columns}
        id={(r) => r.label}
        filters={[
          { name: 'status', title: 'firewall.status', kind: ['ACTIVE', 'INACTIVE'] },
          { name: 'appId', title: 'firewall.app' },
        ]}
        actions={
          <>
            {may('POST /admin/system/waf/explain') && (
              <Anchor component={Link} to={'/firewall/explain'} size="sm">
                {t('firewallWhy.title')}
              </Anchor>
            )}
            <Add />
          </>
        }
        one="firewall.rule"
        curl={(r) => ({ method: 'POST', path, body: draftOf(r) })}
        change={{ title: 'firewall.change', needs: `PATCH ${path}`, testid: 'rule-change' }}
        form={(r, close) => <Change rule={r} onClose={close} />}
        acts={(r, close) => <Actions rule={r} onDone={close} />}
        more={(r) => r.type === 'rate_limit' && <Counters label={r.label} />}
      />
      {search.add === 'rule' && <Add opened onClose={() => setSearch({ add: undefined })} />}
    </>
  );
}

/** A limit of another service counts any text by USER_ID. */
const entityKey = (of: Entity, ofService: boolean): TextKey =>
  ofService && of === 'USER_ID' ? 'firewall.anyText' : `firewall.entity.${of}`;

function Targets({ all, of, kind }: { all: boolean; of: string[]; kind?: TextKey }) {
  const { t } = useTranslation();
  const shown = all ? t('firewall.all') : of.slice(0, 3).join(', ') + (of.length > 3 ? ` +${of.length - 3}` : '');
  return (
    <Group gap={4} wrap="nowrap">
      {kind && (
        <Badge variant="default" tt="none" miw="max-content">
          {t(kind)}
        </Badge>
      )}{' '}
      <bdi dir={all ? undefined : 'ltr'}>{shown}</bdi>
    </Group>
  );
}

/** Ends the trial, or enables or disables the rule, without a form. It asks before a rule refuses requests. */
function Actions({ rule, onDone }: { rule: Rule; onDone: () => void }) {
  const { t } = useTranslation();
  const may = useMay();
  const act = useAct('patch', path, [path]);
  const sure = useSure();
  const [asking, setAsking] = useState(false);
  if (!may(`PATCH ${path}`)) return null;
  const set = async (title: TextKey, body: { dryRun?: boolean; status?: 'ACTIVE' | 'INACTIVE' }) => {
    setAsking(true);
    const asks = await ruleAsks(t, title, { ...draftOf(rule), ...body }, true).finally(() => setAsking(false));
    if (asks && !(await sure.ask(asks.question))) return;
    if (await act.run({ label: rule.label, ...body, ...(asks?.force ? { force: true } : {}) })) onDone();
  };
  const trial: TextKey = rule.dryRun ? 'firewall.enforce' : 'firewall.try';
  const status: TextKey = rule.status === 'ACTIVE' ? 'firewall.off' : 'firewall.on';
  return (
    <>
      <Button
        size="xs"
        variant="default"
        loading={act.busy || asking}
        onClick={() => void set(trial, { dryRun: !rule.dryRun })}
        data-testid="rule-trial"
      >
        {t(trial)}
      </Button>
      <Button
        size="xs"
        variant="default"
        loading={act.busy || asking}
        data-testid="rule-status"
        onClick={() => void set(status, { status: rule.status === 'ACTIVE' ? 'INACTIVE' : 'ACTIVE' })}
      >
        {t(status)}
      </Button>
      <Problem of={act.problem} />
      {act.view}
      {sure.view}
    </>
  );
}

/** The name of a service key, from the list if the user may read it. */
function Service({ value, onChange, ...common }: Custom) {
  const may = useMay()('GET /admin/service-keys');
  const keys = useRead('/admin/service-keys', undefined, { enabled: may });
  return (
    <Autocomplete
      {...common}
      data-testid="field-appId"
      required
      dir="ltr"
      data={keys.data?.map((k) => k.name)}
      value={textOf(value)}
      onChange={onChange}
    />
  );
}

/** units are the units of the period that the form offers, in milliseconds. */
function useFields(units: Unit[]): Input<Form>[] {
  const { t } = useTranslation();
  const ofService = (v: Record<string, unknown>) => v.type === serviceLimit;
  const limited = (v: Record<string, unknown>) => v.type === 'rate_limit' || ofService(v);
  return [
    { name: 'label', title: 'firewall.label', required: true },
    {
      name: 'type',
      title: 'firewall.type',
      kind: types.map((value) => ({ value, label: t(`firewall.type.${value}`) })),
      required: true,
    },
    {
      name: 'appId',
      title: 'firewall.entity.APP_ID',
      kind: { of: Service },
      required: true,
      help: 'firewall.serviceHelp',
      when: ofService,
    },
    { name: 'limit', title: 'firewall.limitOf', kind: 'number', required: true, when: limited },
    {
      name: 'period',
      title: 'firewall.period',
      kind: 'number',
      required: true,
      when: limited,
    },
    {
      name: 'unit',
      title: 'firewall.unit',
      required: true,
      when: limited,
      kind: units.map((ms) => ({ value: String(ms), label: t(`firewall.unit.${ms}`) })),
    },
    {
      name: 'targetEntityType',
      title: 'firewall.entityType',
      required: true,
      kind: entities.map((value) => ({ value, label: t(`firewall.entity.${value}`) })),
      when: (v) => !ofService(v),
    },
    {
      name: 'targetEntityType',
      title: 'firewall.countBy',
      required: true,
      kind: entities.map((value) => ({ value, label: t(entityKey(value, true)) })),
      when: ofService,
    },
    { name: 'targetAllEntities', title: 'firewall.allEntities', kind: 'flag' },
    {
      name: 'targetEntities',
      title: 'firewall.entities',
      kind: 'list',
      help: 'firewall.listHelp',
      when: (v) => v.targetAllEntities !== true,
    },
    { name: 'targetAllResources', title: 'firewall.allResources', kind: 'flag', when: (v) => !ofService(v) },
    {
      name: 'targetResources',
      title: 'firewall.resources',
      kind: 'list',
      help: 'firewall.resourcesHelp',
      when: (v) => v.targetAllResources !== true && !ofService(v),
    },
    { name: 'targetResources', title: 'firewall.limits', kind: 'list', help: 'firewall.limitsHelp', when: ofService },
    { name: 'expireAt', title: 'firewall.expireAt', kind: 'date', help: 'firewall.expireHelp' },
    { name: 'status', title: 'firewall.status', kind: ['ACTIVE', 'INACTIVE'], required: true },
    { name: 'dryRun', title: 'firewall.trial', kind: 'flag', help: 'firewall.trialHelp' },
    { name: 'force', title: 'firewall.force', kind: 'flag', help: 'firewall.forceHelp' },
  ];
}

/** The input as a request. */
function bodyOf({ unit, type, ...values }: Partial<Form>): Draft {
  const ms = unitsMs.find((one) => String(one) === unit) ?? 1;
  const period = values.period === undefined ? {} : { period: values.period * ms };
  const all = { ...values, ...period, expireAt: values.expireAt || 0 };
  if (type !== serviceLimit) return { ...all, ...(type ? { type } : {}) } as Draft;
  const targetResources = (values.targetResources ?? []).map((name) => limitPrefix + name);
  return { ...all, type: 'rate_limit', targetResources } as Draft;
}

/** The input as a request; undefined while it is incomplete. */
function draft(values: Partial<Form>): Draft | undefined {
  const v = bodyOf(values);
  const limited = v.type !== 'rate_limit' || (v.limit && v.period);
  // The service reads an empty list as all callers, which must not happen by accident while typing.
  const somebody = v.targetAllEntities || v.targetEntities?.length;
  return v.label && v.type && v.targetEntityType && limited && somebody ? v : undefined;
}

function Add({ opened, onClose }: { opened?: boolean; onClose?: () => void }) {
  const { t } = useTranslation();
  const initial: Partial<Form> = {
    type: 'blacklist',
    targetEntityType: 'IP',
    status: 'ACTIVE',
    dryRun: true,
    unit: '60000',
  };
  return (
    <Write
      method="post"
      path={path}
      title="firewall.add"
      button={{ variant: 'filled' }}
      touches={[path]}
      opened={opened}
      onClose={onClose}
      fields={useFields(unitsMs.slice(0, -1).reverse())}
      initial={initial}
      make={bodyOf}
      asks={(rule) => ruleAsks(t, 'firewall.add', rule)}
      before={(values) => <Tried values={values} />}
    />
  );
}

function Change({ rule, onClose }: { rule: Rule; onClose: () => void }) {
  const { t } = useTranslation();
  const before = draftOf(rule);
  const type = typeOf(rule);
  const day = rule.expireAt ? new Date(rule.expireAt).toISOString().slice(0, 10) : undefined;
  const { period } = before;
  const unit = (period && unitsMs.find((ms) => period % ms === 0)) || 60_000;
  const units = unitsMs.filter((ms) => ms > 1 || unit === 1).reverse();
  return (
    <Write
      method="patch"
      path={path}
      title="firewall.change"
      touches={[path]}
      opened
      onClose={onClose}
      fixed={{ label: rule.label }}
      fields={useFields(units).filter(({ name }) => !['label', 'type', 'targetEntityType', 'appId'].includes(name))}
      initial={{
        ...before,
        type,
        ...(type === serviceLimit ? { targetResources: namesOf(rule) } : {}),
        expireAt: day,
        period: period ? period / unit : undefined,
        unit: String(unit),
      }}
      make={(values: Partial<Form>) => {
        const { type: fixed, ...body } = bodyOf({ ...values, type });
        return { ...body, expireAt: values.expireAt === day ? rule.expireAt : body.expireAt };
      }}
      asks={(changes) => ruleAsks(t, 'firewall.change', { ...before, ...changes } as Draft)}
      before={(values) => <Tried values={{ ...before, ...values }} />}
    />
  );
}

/** The effect that the rule would have had. It stays in view below the fields, however long the form is. */
function Tried({ values }: { values: Partial<Form> }) {
  const may = useMay();
  if (values.type === serviceLimit) return <Hint of="firewall.serviceTrial" />;
  if (!may('POST /admin/system/waf/rehearse')) return null;
  const rule = draft(values);
  return <div className="rehearsed">{rule ? <RuleRehearsal rule={rule} /> : <Hint of="rehearse.fill" />}</div>;
}

function Hint({ of }: { of: TextKey }) {
  return (
    <Text size="xs" c="dimmed">
      <Word of={of} />
    </Text>
  );
}

/** An existing rule in the form of an add request. */
function draftOf(rule: Rule): Draft {
  return Object.fromEntries(Object.entries(rule).filter(([, v]) => v !== null)) as unknown as Draft;
}
