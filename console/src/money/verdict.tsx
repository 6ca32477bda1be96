/** The rules of the money policy with the reason of each, those that match first. */
import { Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import type { Schemas } from '../app/api';
import { Problem } from '../app/problem';
import { useMay } from '../app/session';
import { useAnswer } from '../guard/answer';
import { Verdicts } from '../guard/explained';
import { Nothing, Status } from '../kit/show';
import type { TextKey } from '../text/key';

export type Explanation = Schemas['MoneyExplanation'];

export function Answer({ of: { rules }, lead }: { of: Explanation; lead: TextKey }) {
  const { t } = useTranslation();
  const sorted = [...rules].sort((a, b) => (a.matched ? 0 : 1) - (b.matched ? 0 : 1));
  return (
    <div data-testid="policy-answer">
      <Text size="sm" mt="md">
        {t(lead)}
      </Text>
      <Verdicts
        heads={['firewall.label', 'firewallWhy.matched', 'firewallWhy.reason', 'firewallWhy.used']}
        rows={sorted.map((r) => ({
          key: r.label,
          cells: [
            <bdi>{r.label}</bdi>,
            <Status of={r.matched} />,
            t(`policy.why.${r.reason}`),
            r.used === null ? <Nothing /> : <bdi dir="ltr">{`${r.used} / ${r.limit}`}</bdi>,
          ],
        }))}
      />
    </div>
  );
}

const explain = '/admin/money/explain';

/** The rules that decided about a movement at its request. */
export function Explained({ id }: { id: string }) {
  const asked = useMay()(`POST ${explain}`);
  const answer = useAnswer(explain, asked ? { movementId: id } : undefined);
  return (
    <>
      <Problem of={answer.error} />
      {answer.data && <Answer of={answer.data.data} lead="hold.explained" />}
    </>
  );
}
