/**
 * "Why?": links a refusal, a challenge or a failed login to the explanation with its inputs. An action links to the
 * MFA policies, a resource ("POST /auth/login") to the firewall rules. With both there are two links.
 */
import { Group } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { placeOf, type Place } from '../app/address';
import { useMay } from '../app/session';
import { AnchorLink } from '../app/frame/link';

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
  const link = (name: 'mfa' | 'firewall', place: Place) => (
    <AnchorLink {...place} size="sm" data-testid={`why-${name}`} target={aside ? '_blank' : undefined}>
      {t(`why.${name}`)}
    </AnchorLink>
  );
  const factor = action && may('POST /admin/system/mfa/explain');
  const rules = resource && may('POST /admin/system/waf/explain');
  if (!factor && !rules) return null;
  return (
    <Group gap="sm">
      {factor && link('mfa', placeOf('/mfa/explain', { actionCode: action, userId, ip }))}
      {rules && link('firewall', placeOf('/firewall/explain', { resource, userId, ip, countryCode: country, code }))}
    </Group>
  );
}
