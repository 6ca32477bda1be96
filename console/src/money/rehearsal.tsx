/** The effect that a rule of the money policy would have had in the last days, while the user types it. */
import { Alert, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { Refusal, type Schemas } from '../app/api';
import { sentence } from '../app/sentence';
import { useMay } from '../app/session';
import { useAnswer } from '../guard/answer';
import { useSettled } from '../guard/rehearsal';
import { Money, shortOf, Time } from '../kit/show';
import { madeAt } from './parts';
import { Explained } from './verdict';

const path = '/admin/money/rehearse';
const days = 30;

type Rule = Schemas['RehearseMoneyRuleRequest']['rule'];

/** rule is undefined while its form is incomplete. */
export function Rehearsal({ rule }: { rule?: Rule }) {
  const { t, i18n } = useTranslation();
  const may = useMay();
  const answer = useAnswer(path, useSettled(rule && { rule, days }));
  const x = answer.data?.data;
  if (!may(`POST ${path}`)) return null;
  if (!rule || answer.error)
    return (
      <Text size="sm" c="dimmed" className="rehearsed" data-testid="rehearsal-problem">
        {rule ? sentence(Refusal.of(answer.error).message, i18n.language) : t('policy.fill')}
      </Text>
    );
  const stopped = x && x.held + x.denied + x.ownerAsked > 0;
  return (
    <div className="rehearsed">
      <Alert
        color={stopped ? 'yellow' : 'gray'}
        title={t('policy.rehearsed', { count: days })}
        aria-live="polite"
        data-testid="rehearsal"
      >
        {!x && <Text size="sm">{t('rehearse.waits')}</Text>}
        {x && (
          <Stack gap={4}>
            <Text size="sm">{t('policy.wouldHold', { ...x })}</Text>
            {stopped && (
              <Text size="sm">
                {t('policy.wouldStop', { accounts: x.accounts })} <Money amount={x.value} unit="TRY" />
                {x.longestWait && ` · ${t('policy.waits', { median: x.medianWait, longest: x.longestWait })}`}
              </Text>
            )}
            {x.unknown > 0 && <Text size="xs">{t('policy.unknown', { count: x.unknown })}</Text>}
            {x.truncated && <Text size="xs">{t('policy.truncated')}</Text>}
            {x.examples.length > 0 && (
              <details>
                <summary>{t('rehearse.examples')}</summary>
                {x.examples.map((id) => (
                  <Example key={id} id={id} />
                ))}
              </details>
            )}
          </Stack>
        )}
      </Alert>
    </div>
  );
}

/** A movement that the rule would have stopped, with the decision of the rules in force. */
function Example({ id }: { id: string }) {
  const [open, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <Time at={madeAt(id)} /> <bdi dir="ltr">{shortOf(id)}</bdi>
      </summary>
      {open && <Explained id={id} />}
    </details>
  );
}
