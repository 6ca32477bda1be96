/** Explains which policy applies to an action of an account, and which methods a challenge would offer. */
import { Alert, Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { useTexts } from '../app/address';
import { useMay } from '../app/session';
import { useAnswer } from '../guard/answer';
import { useRead } from '../kit/read';
import { Fact, Facts } from '../kit/record';
import { Id, Status, Time, plain } from '../kit/show';
import { Explained, Verdicts } from '../guard/explained';

export default function MfaExplain() {
  const { t } = useTranslation();
  const may = useMay();
  const { actionCode, userId, ip } = useTexts();
  const actions = useRead('/admin/system/mfa/actions', undefined, { enabled: may('GET /admin/system/mfa/actions') });
  const answer = useAnswer('/admin/system/mfa/explain', actionCode ? { actionCode, userId, ip } : undefined);
  const x = answer.data;
  const enough = x && x.offered.length >= x.required;
  return (
    <Explained
      area="mfa"
      back="/mfa"
      needs="GET /admin/system/mfa/policies"
      error={answer.error}
      fields={[
        {
          name: 'actionCode',
          title: 'explain.action',
          required: true,
          options: actions.data?.map((a) => a.actionCode) ?? [],
        },
        { name: 'userId', title: 'explain.user' },
        { name: 'ip', title: 'explain.ip' },
      ]}
    >
      {x && (
        <>
          <Alert color={enough ? 'green' : 'red'} data-testid="decision">
            {t(enough ? 'mfaWhy.starts' : 'mfaWhy.refused', { required: x.required, offered: x.offered.length })}
          </Alert>
          <Facts>
            <Fact title="mfaWhy.policy">
              {x.policyId === null ? <Text size="sm">{t('mfaWhy.builtIn')}</Text> : <Id of={x.policyId} />}
            </Fact>
            <Fact title="mfaWhy.entity">{plain(x.entityType)}</Fact>
            <Fact title="mfaWhy.offered">{plain(x.offered.join(', '))}</Fact>
            <Fact title="mfaWhy.missing">{plain(x.missing.join(', '))}</Fact>
          </Facts>
          {x.candidates.length > 0 && (
            <Verdicts
              heads={['mfa.name', 'mfaWhy.entity', 'mfa.expireAt', 'firewallWhy.reason']}
              rows={x.candidates.map((c) => ({
                key: c.policyId,
                cells: [
                  <bdi>{c.name}</bdi>,
                  <>
                    <Status of={c.entityType} /> {c.entityId && <Id of={c.entityId} short />}
                  </>,
                  c.expireAt ? <Time at={c.expireAt} /> : t('firewall.never'),
                  t(`mfaWhy.${c.verdict}`),
                ],
              }))}
            />
          )}
        </>
      )}
    </Explained>
  );
}
