/** The preview of an announcement, by platform and language. */
import { Badge, Group, Paper, SegmentedControl, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { languages, type Language } from '../app/i18n';
import { read, type Schemas } from '../app/api';
import { Problem } from '../app/problem';
import { RichText, Shown } from './richtext';

export const announcements = '/announcement/get';
export type Announcement = Schemas['Announcement'];

export const platforms = ['web', 'ios', 'android'] as const;
export type Platform = (typeof platforms)[number];
export const spoken = Object.keys(languages) as Language[];

/** The shown part of an announcement. An image is a URL or a data URL. */
export interface Look {
  title: string;
  message: string;
  html: string;
  pictures: Partial<Record<Platform, string | null>>;
  slider: boolean;
  pinned: boolean;
}

export function lookOf(a: Announcement): Look {
  return {
    title: a.title,
    message: a.message,
    html: a.htmlContent ?? '',
    slider: a.showSlider === true,
    pinned: a.isPinned === true,
    pictures: { web: a.webSliderImageUrl, ios: a.iosSliderImageUrl, android: a.sliderImageUrl },
  };
}

/** Reads an announcement in each language. The service answers in the language of the request. */
export function useTexts(id: number | undefined) {
  return useQuery({
    queryKey: [announcements, 'languages', id],
    enabled: id !== undefined,
    queryFn: async () => {
      const all = spoken.map(async (language) => {
        const query = { id, _requesterLanguage: language };
        return (await read(announcements, { params: { query } })).data?.[0];
      });
      const found = await Promise.all(all);
      return Object.fromEntries(spoken.map((language, n) => [language, found[n]])) as Record<
        Language,
        Announcement | undefined
      >;
    },
  });
}

/** The stored announcement. */
export function Told({ id }: { id: number }) {
  const texts = useTexts(id);
  if (texts.error) return <Problem of={texts.error} />;
  if (!texts.data) return null;
  return (
    <Preview
      look={(language) => {
        const a = texts.data[language];
        return a ? lookOf(a) : { title: '', message: '', html: '', pictures: {}, slider: false, pinned: false };
      }}
    />
  );
}

/** Approximate widths of a phone and of a part of a page. */
const widths: Record<Platform, number> = { web: 720, ios: 340, android: 340 };

/** The look of an announcement, in the language {of}, or else in one that the user chooses. */
export function Preview({ of, look }: { of?: Language; look: (language: Language) => Look }) {
  const { t, i18n } = useTranslation();
  const [platform, setPlatform] = useState<Platform>('web');
  const [chosen, setChosen] = useState(i18n.language as Language);
  const language = of ?? chosen;
  const { title, message, html, pictures, slider, pinned } = look(language);
  const dir = language === 'ar' ? 'rtl' : 'ltr';
  const picture = pictures[platform];
  return (
    <Stack gap="xs" data-testid="look">
      <Group>
        <SegmentedControl
          size="xs"
          value={platform}
          onChange={(v) => setPlatform(v)}
          aria-label={t('announcement.platform')}
          data={platforms.map((value) => ({ value, label: t(`announcement.${value}`) }))}
        />
        {!of && (
          <SegmentedControl
            size="xs"
            value={language}
            onChange={(v) => setChosen(v)}
            aria-label={t('language')}
            data={spoken.map((value) => ({ value, label: languages[value] }))}
          />
        )}
      </Group>
      <Paper withBorder p="md" dir={dir} lang={language} maw={widths[platform]} w="100%" style={{ textAlign: 'start' }}>
        <Stack gap="xs">
          {slider && picture && <Shown address={picture} alt={title} />}
          {slider && !picture && (
            <Text size="sm" c="dimmed" dir="auto">
              {t('announcement.noPicture')}
            </Text>
          )}
          {pinned && (
            <Badge variant="light" w="fit-content">
              {t('announcement.pinned')}
            </Badge>
          )}
          <Text fw={700} size="lg">
            {title}
          </Text>
          <Text style={{ whiteSpace: 'pre-wrap' }}>{message}</Text>
          {html && <RichText html={html} dir={dir} />}
        </Stack>
      </Paper>
    </Stack>
  );
}
