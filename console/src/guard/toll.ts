/** The access that a policy or a rule takes away, as a question before a save. The rehearsal counts it. */
import type { TFunction } from 'i18next';
import { Refusal, start, type Schemas } from '../app/api';
import type { Question } from '../kit/sure';
import type { Asks } from '../kit/write';
import type { TextKey } from '../text/key';

type Policy = Schemas['RehearseMfaPolicyRequest'];
type Rule = Schemas['RehearseFirewallRuleRequest'];

/** Above this share of the accounts the user types a word. */
const MANY = 0.01;

interface Toll {
  lines: string[];
  hit: number;
  of: number;
  you: boolean;
}

async function count<T>(path: '/admin/system/mfa/rehearse' | '/admin/system/waf/rehearse', body: unknown) {
  try {
    return (await (await start('post', path, body as never)).done).data as T;
  } catch (error) {
    if (Refusal.of(error).status === 400) return 'invalid'; // the write itself names the field
    return undefined;
  }
}

/** The question of a write with a toll. */
function question(t: TFunction, title: TextKey, word: string, { lines, hit, of, you }: Toll): Question {
  const much = you || hit > of * MANY;
  return { title, lines: you ? [...lines, t('sure.you')] : lines, word: much ? word : undefined };
}

const unknown = (t: TFunction, title: TextKey, word: string): Asks => ({
  question: { title, lines: [t('sure.unknown')], word },
  force: false,
});

/** always is said also if no account loses access. With it the write names no field, so the user is always asked. */
export async function policyAsks(
  t: TFunction,
  title: TextKey,
  policy: Policy,
  always?: string,
): Promise<Asks | undefined> {
  const x = await count<Schemas['MfaRehearsal']>('/admin/system/mfa/rehearse', policy);
  if (x === 'invalid' && !always) return undefined;
  if (!x || x === 'invalid') return unknown(t, title, policy.actionCode);
  const { lost: hit, accounts: of, you } = x;
  if (hit === 0 && !you && !always) return undefined;
  const lines = [...(always ? [always] : []), t('mfa.lost', { lost: hit, of, action: policy.actionCode })];
  return { question: question(t, title, policy.actionCode, { lines, hit, of, you }), force: you };
}

/** A rule that refuses nothing is not asked for. */
export async function ruleAsks(t: TFunction, title: TextKey, rule: Rule, always = false): Promise<Asks | undefined> {
  if (rule.status !== 'ACTIVE' || rule.dryRun) return undefined;
  const x = await count<Schemas['FirewallRehearsal']>('/admin/system/waf/rehearse', rule);
  if (x === 'invalid' && !always) return undefined;
  if (!x || x === 'invalid') return unknown(t, title, rule.label);
  const { stopped, considered, users: hit, accounts: of, you } = x;
  if (stopped === 0 && !you && !always) return undefined;
  const lines = [t('rehearse.rule', { stopped, considered, users: hit }), t('rehearse.reads')];
  return { question: question(t, title, rule.label, { lines, hit, of, you }), force: you };
}
