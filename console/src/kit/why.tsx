/**
 * "Why?": links a refusal, a challenge or a failed login to the explanation with its inputs. An action links to the
 * MFA policies, a resource ("POST /auth/login") to the firewall rules. With both there are two links.
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
  /** The code of the refusal: not all come from the firewall. */
  code?: string;
  /** Opens in a new tab. */
  aside?: boolean;
}

export function Why({ action, resource, userId, ip, country, code, aside }: Inputs) {
  const { t } = useTranslation();
  const may = useMay();
  const link = (name: 'mfa' | 'firewall', to: string, search: Record<string, string | undefined>) => (
    <Anchor
      component={Link}
      to={to}
      size="sm"
      data-testid={`why-${name}`}
      search={search as never}
      target={aside ? '_blank' : undefined}
    >
      {t(`why.${name}`)}
    </Anchor>
  );
  const factor = action && may('POST /admin/system/mfa/explain');
  const rules = resource && may('POST /admin/system/waf/explain');
  if (!factor && !rules) return null;
  return (
    <Group gap="sm">
      {factor && link('mfa', '/mfa/explain', { actionCode: action, userId, ip })}
      {rules && link('firewall', '/firewall/explain', { resource, userId, ip, countryCode: country, code })}
    </Group>
  );
}
