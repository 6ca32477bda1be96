/**
 * "Why?": from a refusal, a challenge or a failed login to the explanation with its own inputs. An action leads to the
 * policies of the second factor, a resource ("POST /auth/login") to the rules of the firewall; with both there are two.
 */
import { Anchor, Group } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { useMay } from '../app/session';

export interface Inputs {
  action?: string;
  resource?: string;
  userId?: string;
  ip?: string;
  country?: string;
}

export function Why({ action, resource, userId, ip, country }: Inputs) {
  const { t } = useTranslation();
  const may = useMay();
  const factor = action && may('POST /admin/system/mfa/explain');
  const rules = resource && may('POST /admin/system/waf/explain');
  if (!factor && !rules) return null;
  return (
    <Group gap="sm">
      {factor && (
        <Anchor
          component={Link}
          to={'/mfa/explain' as string}
          size="sm"
          data-testid="why-mfa"
          search={{ actionCode: action, userId, ip } as never}
        >
          {t('why.factor')}
        </Anchor>
      )}
      {rules && (
        <Anchor
          component={Link}
          to={'/firewall/explain' as string}
          size="sm"
          data-testid="why-firewall"
          search={{ resource, userId, ip, countryCode: country } as never}
        >
          {t('why.firewall')}
        </Anchor>
      )}
    </Group>
  );
}
