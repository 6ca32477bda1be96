/** What a mailing will be, before it is sent: for how many, by what ways, how it looks, and what it costs in SMS. */
import { Alert, Badge, Group, Paper, Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { useMay } from '../app/session';
import { useRead } from '../kit/read';

const counts = '/user/total-count-by-status';

/**
 * For how many at most. The service counts recipients when the job begins, and says so in its answer; before that it
 * tells how many accounts there are by status. Of those some cannot be reached, or do not let campaigns come.
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
      <Text size="sm">{most === undefined ? t('mailing.allAccounts') : t('mailing.atMost', { count: most })}</Text>
      {narrowed && <Text size="sm">{t('mailing.narrowed')}</Text>}
      {sms && <Text size="sm">{t('mailing.turkish')}</Text>}
    </Alert>
  );
}

/** By which ways a topic goes out, as the parameter NOTIFICATION_TOPICS says. */
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
          {t(`mailing.way.${way}`)}
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

/** The letters of GSM 03.38; any other makes every part of the SMS shorter. */
const gsm = /^[\n\r A-Za-z0-9@£$¥èéùìòÇØøÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ!"#¤%&'()*+,\-./:;<=>?¡ÄÖÑÜ§¿äöñüà]*$/;

/** How many characters a text has, and how many parts of an SMS that is. */
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
