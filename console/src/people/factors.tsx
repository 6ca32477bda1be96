/** The second factors and the sessions of an account, in the head of its page. */
import { Badge } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { useRead } from '../kit/read';
import { Fact } from '../kit/record';
import { plain } from '../kit/show';

export const security = '/admin/user/security';

export function SecondFactors({ id }: { id: string }) {
  const { t } = useTranslation();
  const of = useRead(security, { userId: id }).data?.data;
  const factors =
    of &&
    [
      of.totp && t(of.totpConfirmed ? 'user.factor.app' : 'user.factor.appUnused'),
      of.devices > 0 && t('user.factor.devices', { count: of.devices }),
      of.passkeys > 0 && t('user.factor.passkeys', { count: of.passkeys }),
    ].filter(Boolean);
  return (
    <>
      <Fact title="user.factors">
        {!factors && plain(null)}
        {factors && (
          <div data-testid="factors">
            {factors.join(' · ') || (
              <Badge color="yellow" variant="light" tt="none" miw="max-content" data-tone="yellow">
                {t('user.factor.none')}
              </Badge>
            )}
          </div>
        )}
      </Fact>
      <Fact title="user.sessions">
        {!of && plain(null)}
        {of && (
          <div data-testid="sessions">
            {t('user.sessions.active', { count: of.sessions })}
            {of.rememberedBrowsers > 0 && ` · ${t('user.sessions.remembered', { count: of.rememberedBrowsers })}`}
          </div>
        )}
      </Fact>
    </>
  );
}
