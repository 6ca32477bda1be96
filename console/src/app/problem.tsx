/** A problem, always with code and request id, and a link to its explanation where there is one. */
import { Alert, Code, CopyButton, Group, Text, UnstyledButton } from '@mantine/core';
import { lazy, Suspense } from 'react';
import { useTranslation } from 'react-i18next';
import { Refusal } from './api';
import { script } from './script';
import { sentence } from './sentence';
import { useSession } from './session';

/** The link to the explanation. It needs the routes and so a login. It is left out if its script fails to load. */
export const Why = lazy(() => script(() => import('./why')).catch(() => ({ default: () => null })));

export function Problem({ of }: { of: unknown }) {
  const { t, i18n } = useTranslation();
  const { token } = useSession();
  if (!of) return null;
  const refusal = Refusal.of(of);
  const message = sentence(refusal.message, i18n.language, refusal.errors);
  return (
    <Alert
      color="red"
      role="alert"
      title={refusal.status === 0 ? t('problem.network') : message || t('problem.refused')}
      data-testid="problem"
    >
      <Group gap="xs" wrap="wrap">
        {refusal.code && <Code>{refusal.code}</Code>}
        {refusal.attemptsLeft !== undefined && (
          <Text size="sm">{t('problem.attempts', { count: refusal.attemptsLeft })}</Text>
        )}
        {refusal.retryAfter > 0 && <Text size="sm">{t('problem.retry', { seconds: refusal.retryAfter })}</Text>}
        {refusal.requestId && (
          <CopyButton value={refusal.requestId}>
            {({ copied, copy }) => (
              <UnstyledButton onClick={copy} title={t('copy')}>
                <Code dir="ltr">{copied ? t('copied') : refusal.requestId}</Code>
              </UnstyledButton>
            )}
          </CopyButton>
        )}
        {token && refusal.asked && refusal.status > 0 && (
          <Suspense>
            <Why asked={refusal.asked} code={refusal.code} />
          </Suspense>
        )}
      </Group>
      {refusal.errors.length > 1 && (
        <ul>
          {refusal.errors.map((e) => (
            <li key={e.field}>
              <Code>{e.field}</Code> <bdi>{sentence(e.message, i18n.language)}</bdi>
            </li>
          ))}
        </ul>
      )}
    </Alert>
  );
}
