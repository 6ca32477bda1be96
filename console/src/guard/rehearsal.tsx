/** Shows what a rule or a policy would have done in the last 24 hours, while the user types it. */
import { Alert, Stack, Table, Text } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useTranslation } from 'react-i18next';
import { actName } from '../app/actname';
import type { Schemas } from '../app/api';
import { Refusal } from '../app/api';
import { sentence } from '../app/sentence';
import { useAnswer } from './answer';
import { Person } from '../kit/person';
import { Time } from '../kit/show';
import { Wide } from '../kit/wide';

export function RuleRehearsal({ rule }: { rule?: Schemas['RehearseFirewallRuleRequest'] }) {
  const { t } = useTranslation();
  const body = useSettled(rule);
  const answer = useAnswer('/admin/system/waf/rehearse', body);
  const x = answer.data;
  return (
    <Shown
      error={answer.error}
      stopped={x?.stopped}
      examples={x?.examples}
      truncated={x?.truncated}
      text={x && t('rehearse.rule', { stopped: x.stopped, considered: x.considered, users: x.users })}
      hint={t('rehearse.reads')}
    />
  );
}

export function PolicyRehearsal({ policy }: { policy?: Schemas['RehearseMfaPolicyRequest'] }) {
  const { t } = useTranslation();
  const body = useSettled(policy);
  const answer = useAnswer('/admin/system/mfa/rehearse', body);
  const x = answer.data;
  return (
    <Shown
      error={answer.error}
      stopped={x?.stopped}
      examples={x?.examples}
      truncated={x?.truncated}
      text={
        x && t('rehearse.policy', { stopped: x.stopped, changed: x.changed, considered: x.considered, users: x.users })
      }
    />
  );
}

/** Sends the draft after a pause in typing. */
export function useSettled<T>(value: T): T {
  const [text] = useDebouncedValue(JSON.stringify(value), 500);
  return text === undefined ? (undefined as T) : (JSON.parse(text) as T);
}

function Shown({
  text,
  stopped = 0,
  examples = [],
  truncated,
  error,
  hint,
}: {
  text?: string;
  stopped?: number;
  examples?: Schemas['RehearsalExample'][];
  truncated?: boolean;
  error: unknown;
  hint?: string;
}) {
  const { t, i18n } = useTranslation();
  if (error)
    return (
      <Text size="sm" c="dimmed" data-testid="rehearsal-problem">
        {sentence(Refusal.of(error).message, i18n.language)}
      </Text>
    );
  return (
    <Alert
      color={stopped > 0 ? 'yellow' : 'gray'}
      title={t('rehearse.title')}
      aria-live="polite"
      data-testid="rehearsal"
    >
      <Stack gap="xs">
        <Text size="sm" data-stopped={text ? stopped : undefined}>
          {text ?? t('rehearse.waits')}
        </Text>
        {hint && <Text size="xs">{hint}</Text>}
        {truncated && <Text size="xs">{t('rehearse.truncated')}</Text>}
        {examples.length > 0 && (
          <details>
            <summary>{t('rehearse.examples')}</summary>
            <Wide label={t('rehearse.title')} minWidth={420} maxHeight="30vh">
              <Table>
                <Table.Tbody>
                  {examples.map((e) => (
                    <Table.Tr key={e.requestId}>
                      <Table.Td>
                        <Time at={e.at} />
                      </Table.Td>
                      <Table.Td>{actName(e.action, t)}</Table.Td>
                      <Table.Td>
                        <bdi dir="ltr">{e.ip}</bdi>
                      </Table.Td>
                      <Table.Td>
                        <Person id={e.userId} />
                      </Table.Td>
                    </Table.Tr>
                  ))}
                </Table.Tbody>
              </Table>
            </Wide>
          </details>
        )}
      </Stack>
    </Alert>
  );
}
