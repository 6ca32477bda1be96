/** The heading of a card, and a sentence about it. */
import { Text, Title } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import type { TextKey } from '../text/key';

export function Headed({ title, lead }: { title: TextKey; lead: TextKey }) {
  const { t } = useTranslation();
  return (
    <div style={{ flex: '1 1 240px' }}>
      <Title order={2} size="h5">
        {t(title)}
      </Title>
      <Lead of={lead} />
    </div>
  );
}

/** One sentence about a card or a list. */
export function Lead({ of }: { of: TextKey }) {
  const { t } = useTranslation();
  return (
    <Text size="sm" c="dimmed">
      {t(of)}
    </Text>
  );
}
