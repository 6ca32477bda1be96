/** Explains the decision of the firewall for one request, rule by rule. */
import { Alert, Card, Group, Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { placeOf, useTexts, type Place } from '../app/address';
import { useMay } from '../app/session';
import { useAnswer } from './answer';
import { AnchorLink } from '../app/frame/link';
import { Nothing, Status } from '../kit/show';
import { Explained, Verdicts } from './explained';

export default function FirewallExplain() {
  const { t } = useTranslation();
  const { resource, service, userId, ip, countryCode, code } = useTexts();
  const answer = useAnswer(
    '/admin/system/waf/explain',
    resource ? { resource, service, userId, ip, countryCode } : undefined,
  );
  const x = answer.data;
  const rules = [...(x?.rules ?? [])].sort((a, b) => rank(a.matched, a.reason) - rank(b.matched, b.reason));
  return (
    <Explained
      area="firewall"
      back="/firewall"
      needs="GET /admin/system/waf/rules"
      error={answer.error}
      fields={[
        { name: 'resource', title: 'explain.resource', hint: 'POST /auth/login', required: true },
        { name: 'service', title: 'firewall.entity.APP_ID' },
        { name: 'userId', title: 'explain.user' },
        { name: 'ip', title: 'explain.ip' },
        { name: 'countryCode', title: 'explain.country', hint: 'TR' },
      ]}
    >
      {x && (
        <>
          <Alert color={x.decision === 'ALLOW' ? 'green' : 'red'} data-testid="decision">
            <Group gap="xs">
              <Status of={x.decision} />
              <Text size="sm">
                {x.decidedBy ? t('firewallWhy.by', { label: x.decidedBy }) : t('firewallWhy.byNone')}
              </Text>
            </Group>
          </Alert>
          <Elsewhere code={code} userId={userId} />
          {rules.length === 0 ? (
            <Text size="sm">{t('firewallWhy.noRules')}</Text>
          ) : (
            <Verdicts
              heads={[
                'firewall.label',
                'firewall.type',
                'firewallWhy.matched',
                'firewallWhy.reason',
                'firewallWhy.used',
              ]}
              rows={rules.map((r) => ({
                key: r.label,
                cells: [
                  <bdi>{r.label}</bdi>,
                  t(`firewall.type.${r.type}`),
                  <Status of={r.matched} />,
                  t(`firewallWhy.${r.reason}`),
                  r.used === null ? (
                    <Nothing />
                  ) : (
                    <bdi dir="ltr">{t('firewallWhy.count', { used: r.used, limit: r.limit })}</bdi>
                  ),
                ],
              }))}
            />
          )}
        </>
      )}
    </Explained>
  );
}

interface Other {
  at: (userId: string) => Place;
  needs: string;
}

/** Refusals that the firewall does not decide: a permission, or a setting of the account's owner. */
const elsewhere = {
  FORBIDDEN: { at: () => placeOf('/roles'), needs: 'GET /admin/roles' },
  GEO_BLOCKED: { at: (id) => placeOf('/users/$id', { tab: 'audit' }, id), needs: 'GET /admin/list-users' },
  IP_NOT_ALLOWED: { at: (id) => placeOf('/users/$id', { tab: 'audit' }, id), needs: 'GET /admin/list-users' },
} satisfies Record<string, Other>;

const isElsewhere = (code = ''): code is keyof typeof elsewhere => code in elsewhere;

function Elsewhere({ code, userId }: { code?: string; userId?: string }) {
  const { t } = useTranslation();
  const may = useMay();
  if (!isElsewhere(code)) return null;
  const of: Other = elsewhere[code];
  return (
    <Card withBorder p="sm" data-testid="elsewhere">
      <Group gap="xs">
        <Text size="sm">{t(`firewallWhy.code.${code}`)}</Text>
        {may(of.needs) && (userId || code === 'FORBIDDEN') && (
          <AnchorLink {...of.at(userId ?? '')} size="sm">
            {t(code === 'FORBIDDEN' ? 'roles.title' : 'audit.toUser')}
          </AnchorLink>
        )}
      </Group>
    </Card>
  );
}

/** The deciding rule first, then the other relevant rules. */
function rank(matched: boolean, reason: string): number {
  return reason === 'DECIDES' || reason === 'OVER_LIMIT' ? 0 : matched ? 1 : 2;
}
