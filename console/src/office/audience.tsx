/** A preview of a mailing: recipients, channels, look, and SMS parts. */
import { Alert, Badge, Group, Paper, Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { useMay } from '../app/session';
import { useRead } from '../kit/read';

const counts = '/user/total-count-by-status';

/**
 * The maximum number of recipients. The service counts recipients when the job starts. Until then, the preview uses
 * the number of accounts by status. Some of those have no address, or do not accept campaigns.
 */
export function Audience({
  ids,
  statuses = [],
  narrowed = false,
  sms = false,
}: {
  ids?: string[];
  statuses?: string[];
  narrowed?: boolean;
  sms?: boolean;
}) {
  const { t } = useTranslation();
  const may = useMay();
  const all = useRead(counts, undefined, { enabled: !ids && may(`GET ${counts}`) });
  const known = all.data?.filter((c) => statuses.length === 0 || statuses.includes(c.statusCode));
  const most = ids ? ids.length : known?.reduce((sum, c) => sum + c.total, 0);
  return (
    <Alert color={ids ? 'blue' : 'yellow'} data-testid="audience">
      <Text size="sm">
        {most === undefined
          ? t('mailing.allAccounts')
          : ids?.length === 0
            ? t('mailing.addAccounts')
            : t('mailing.atMost', { count: most })}
      </Text>
      {narrowed && <Text size="sm">{t('mailing.narrowed')}</Text>}
      {sms && <Text size="sm">{t('mailing.turkish')}</Text>}
    </Alert>
  );
}

/** The channels of a topic, from the parameter NOTIFICATION_TOPICS. */
export function Channels({
  topic,
  topics,
}: {
  topic: string;
  topics?: { topics?: Record<string, string[]>; other?: string[] };
}) {
  const { t } = useTranslation();
  if (!topics) return null;
  if (!topic)
    return (
      <Text size="sm">
        {t('mailing.known')} <bdi dir="ltr">{Object.keys(topics.topics ?? {}).join(', ')}</bdi>
      </Text>
    );
  const ways = topics.topics?.[topic] ?? topics.other ?? [];
  return (
    <Group gap="xs" data-testid="channels">
      <Text size="sm">{t('mailing.ways')}</Text>
      {ways.map((way) => (
        <Badge key={way} variant="light" tt="none">
          {t(`mailing.way.${way}`, { defaultValue: way })}
        </Badge>
      ))}
      {ways.length === 0 && <Text size="sm">{t('mailing.noWay')}</Text>}
    </Group>
  );
}

export function Letter({ title, body, language }: { title: string; body: string; language: string }) {
  const dir = language === 'ar' ? 'rtl' : language ? 'ltr' : 'auto';
  if (!title && !body) return null;
  return (
    <Paper withBorder p="sm" dir={dir} lang={language || undefined} maw={340}>
      <Text fw={700} dir={dir}>
        {title}
      </Text>
      <Text size="sm" dir={dir} style={{ whiteSpace: 'pre-wrap' }}>
        {body}
      </Text>
    </Paper>
  );
}

/** The characters of GSM 03.38. Any other character shortens every part of the SMS. */
const gsm = /^[\n\r A-Za-z0-9@£$¥èéùìòÇØøÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ!"#¤%&'()*+,\-./:;<=>?¡ÄÖÑÜ§¿äöñüà]*$/;

/** The number of characters of a text, and of its SMS parts. */
export function partsOf(text: string): { characters: number; parts: number } {
  const characters = text.length;
  const [one, many] = gsm.test(text) ? [160, 153] : [70, 67];
  return { characters, parts: characters === 0 ? 0 : characters <= one ? 1 : Math.ceil(characters / many) };
}

export function Length({ text }: { text: string }) {
  const { t } = useTranslation();
  const { characters, parts } = partsOf(text);
  return (
    <Text size="sm" c="dimmed" data-testid="parts">
      {t('mailing.length', { characters, count: parts })}
    </Text>
  );
}
