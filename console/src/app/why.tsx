/** "Why?": from a refusal to the explanation, with that request's own inputs (the firewall's or the policies'). */
import { Anchor } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import type { Refusal } from './api';
import { useMay, useSession } from './session';

const byFirewall = new Set(['RATE_LIMITED', 'ACCESS_DENIED', 'GEO_BLOCKED', 'IP_NOT_ALLOWED', 'FORBIDDEN']);

export default function Why({ refusal }: { refusal: Refusal }) {
  const { t } = useTranslation();
  const may = useMay();
  const { userId } = useSession();
  if (!byFirewall.has(refusal.code) || !refusal.asked || !may('POST /admin/system/waf/explain')) return null;
  return (
    <Anchor
      component={Link}
      to={'/firewall/explain' as string}
      search={{ resource: refusal.asked, userId } as never}
      size="sm"
    >
      {t('why')}
    </Anchor>
  );
}
