/** The form of an announcement: texts by language, period, images, and a preview. */
import { Button, FileInput, Group, SimpleGrid, Stack, Tabs, Textarea, TextInput, Title } from '@mantine/core';
import { useRef, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useAct } from '../app/act';
import type { Body } from '../app/api';
import { languages, type Language } from '../app/i18n';
import { Problem } from '../app/problem';
import { useDraft } from '../kit/draft';
import { FormDrawer, Restored, useClosing } from '../kit/drawer';
import { encoded, Field, typedIn, type Input } from '../kit/write';
import { Editor } from './editor';
import { announcements, type Announcement, platforms, Preview, spoken, useTexts, type Platform } from './preview';

const add = '/announcement/add';
const update = '/announcement/update';
type Values = Record<string, unknown>;
type Change = Body<typeof update, 'post'>;

/** The texts of one language. */
interface Texts {
  title: string;
  message: string;
  html: string;
}

type ByLanguage = Record<Language, Texts>;
const none: Texts = { title: '', message: '', html: '' };

const fields: Input<Values>[] = [
  { name: 'startDate', title: 'announcement.start', required: true, kind: 'date' },
  { name: 'endDate', title: 'announcement.end', required: true, kind: 'date' },
  {
    name: 'priority',
    title: 'announcement.priority',
    required: true,
    kind: 'number',
    help: 'announcement.priorityHelp',
  },
  { name: 'orderNo', title: 'announcement.order', kind: 'number' },
  { name: 'isActive', title: 'announcement.active', kind: 'flag' },
  { name: 'isPinned', title: 'announcement.pinned', kind: 'flag' },
  { name: 'isExpanded', title: 'announcement.expanded', kind: 'flag' },
  { name: 'showSlider', title: 'announcement.slider', kind: 'flag' },
];

const ofSlider: Input<Values>[] = [
  { name: 'sliderName', title: 'announcement.sliderName' },
  { name: 'sliderClientType', title: 'announcement.client' },
  { name: 'type', title: 'announcement.type', kind: 'number' },
  { name: 'routeContent', title: 'announcement.route', kind: 'json' },
];

const pictureField: Record<Platform, 'webSliderImageData' | 'iosSliderImageData' | 'sliderImageData'> = {
  web: 'webSliderImageData',
  ios: 'iosSliderImageData',
  android: 'sliderImageData',
};

interface Props {
  of?: Announcement;
  /** The user closes the form. */
  onClose: () => void;
  onDone: () => void;
}

export function AnnouncementForm(props: Props) {
  const { of, onClose } = props;
  const texts = useTexts(of?.id);
  if (of && !texts.data) return <Problem of={texts.error} />;
  const stored = Object.fromEntries(
    spoken.map((language) => {
      const a = texts.data?.[language];
      return [language, a ? { title: a.title, message: a.message, html: a.htmlContent ?? '' } : none];
    }),
  ) as ByLanguage;
  return (
    <FormDrawer opened onClose={onClose} size="xl" title={of ? 'announcement.change' : 'announcement.add'}>
      <Form {...props} stored={of ? stored : { tr: none, en: none, ar: none }} />
    </FormDrawer>
  );
}

/**
 * The texts of the request. The service answers one language at a time and falls back to another where a text is
 * missing. So equal texts in all languages are sent as one text.
 */
function words(texts: ByLanguage): Partial<Change> {
  const of = (name: keyof Texts): [string, Partial<Record<Language, string>>] => {
    const written = spoken.filter((language) => texts[language][name].trim());
    const one = new Set(written.map((language) => texts[language][name])).size <= 1;
    const by = one ? {} : Object.fromEntries(written.map((language) => [language, texts[language][name]]));
    return [texts[written[0] ?? 'en'][name], by];
  };
  const [[title, titleJson], [message, messageJson], [html, htmlContentJson]] = [
    of('title'),
    of('message'),
    of('html'),
  ];
  return { title, titleJson, message, messageJson, htmlContent: html || null, htmlContentJson };
}

const day = (at: string) => at.slice(0, 10);

/** The input besides the fields. The images are not kept as a draft. */
interface Besides {
  texts: ByLanguage;
  pictures: Partial<Record<Platform, string>>;
}

function Form({ of, stored: read, onDone }: Props & { stored: ByLanguage }) {
  const { t, i18n } = useTranslation();
  const adding = useAct('post', add, [announcements], undefined, 'announcement.add');
  const changing = useAct('post', update, [announcements], undefined, 'announcement.change');
  const act = of ? changing : adding;
  const [stored] = useState(read);
  const first: Values = of
    ? { ...of, startDate: day(of.startDate), endDate: day(of.endDate) }
    : { isActive: true, priority: 0 };
  const draft = useDraft<Values & Besides>(
    `announcement:${of?.id ?? 'new'}`,
    { ...first, texts: stored, pictures: {} },
    (name) => name === 'pictures',
  );
  const close = useClosing(draft);
  const { texts, pictures, ...values } = draft.value;
  const chosen = useRef(pictures); // a file is read after its choice
  const setPicture = (p: Platform, data?: string) => {
    chosen.current = { ...chosen.current, [p]: data };
    draft.set({ pictures: chosen.current });
  };
  /** A language, or another one if it has no title and the other one has. */
  const titled = (wanted: Language) =>
    texts[wanted].title ? wanted : (spoken.find((other) => texts[other].title) ?? wanted);
  const [language, setLanguage] = useState(() => titled(i18n.language as Language));
  const wrong = (name: string) => act.problem?.errors.find((e) => e.field === name)?.message;
  const shown = [...fields, ...(values.showSlider === true ? ofSlider : [])];
  // Unchanged fields are not sent: a day of the form would otherwise cut off the hour of a stored time.
  const touched = shown.filter(({ name }) => {
    const before = of && (name === 'startDate' || name === 'endDate' ? day(of[name]) : (of as Values)[name]);
    return values[name] !== undefined && values[name] !== before;
  });
  async function save() {
    const body = {
      ...(of ? { id: of.id } : {}),
      ...(!of || JSON.stringify(texts) !== JSON.stringify(stored) ? words(texts) : {}),
      ...Object.fromEntries(touched.map(({ name }) => [name, values[name]])),
      ...Object.fromEntries(platforms.filter((p) => pictures[p]).map((p) => [pictureField[p], pictures[p]])),
    };
    if (!of) (body as Values).isActive = values.isActive === true;
    const done = of ? await changing.run(body as Change) : await adding.run(body as Body<typeof add, 'post'>);
    if (!done) return;
    draft.done();
    onDone();
  }
  const stored3: Record<Platform, string | null | undefined> = {
    web: of?.webSliderImageUrl,
    ios: of?.iosSliderImageUrl,
    android: of?.sliderImageUrl,
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      <Stack>
        <Restored of={draft} />
        <TextsIn
          texts={texts}
          open={language}
          onOpen={setLanguage}
          onChange={(next) => draft.set({ texts: next })}
          wrong={wrong}
        />
        <SimpleGrid cols={{ base: 1, sm: 2 }}>
          {shown.map((f) => (
            <Field
              key={`${f.name} ${draft.round}`}
              field={f}
              value={values[f.name]}
              error={wrong(f.name)}
              typed={values[typedIn + f.name] as string | undefined}
              onTyped={(text) => draft.set({ [typedIn + f.name]: text })}
              onChange={(v) => draft.set({ [f.name]: v })}
            />
          ))}
        </SimpleGrid>
        {values.showSlider === true && (
          <SimpleGrid cols={{ base: 1, sm: 3 }}>
            {platforms.map((p) => (
              <FileInput
                key={p}
                label={t('announcement.picture', { platform: t(`announcement.${p}`) })}
                clearable
                clearButtonProps={{ 'aria-label': t('list.clear') }}
                accept="image/png,image/jpeg,image/webp,image/gif"
                error={wrong(pictureField[p])}
                data-testid={`picture-${p}`}
                onChange={(file) => {
                  if (file) void encoded(file, true).then((data) => setPicture(p, data));
                  else setPicture(p);
                }}
              />
            ))}
          </SimpleGrid>
        )}
        <Title order={3} size="h5">
          {t('announcement.preview')}
        </Title>
        <Preview
          of={language}
          look={(language) => ({
            ...texts[titled(language)],
            pictures: Object.fromEntries(platforms.map((p) => [p, pictures[p] ?? stored3[p]])),
            slider: values.showSlider === true,
            pinned: values.isPinned === true,
          })}
        />
        <Problem of={act.problem} />
        <Group justify="flex-end">
          <Button variant="default" onClick={close}>
            {t('cancel')}
          </Button>
          <Button type="submit" loading={act.busy} data-testid="announcement-save">
            {t('content.save')}
          </Button>
        </Group>
      </Stack>
      {act.view}
    </form>
  );
}

function TextsIn({
  texts,
  open,
  onOpen,
  onChange,
  wrong,
}: {
  texts: ByLanguage;
  /** The language whose texts are shown. */
  open: Language;
  onOpen: (language: Language) => void;
  onChange: (texts: ByLanguage) => void;
  wrong: (name: string) => string | undefined;
}) {
  const { t } = useTranslation();
  return (
    <Tabs value={open} onChange={(next) => onOpen(next as Language)}>
      <Tabs.List aria-label={t('language')}>
        {spoken.map((language) => (
          <Tabs.Tab key={language} value={language} lang={language} data-testid={`texts-${language}`}>
            {languages[language]}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {spoken.map((language) => {
        const set = (name: keyof Texts, text: string) =>
          onChange({ ...texts, [language]: { ...texts[language], [name]: text } });
        const dir = language === 'ar' ? 'rtl' : 'ltr';
        return (
          <Tabs.Panel key={language} value={language} pt="sm">
            <Stack>
              <TextInput
                label={t('announcement.subject')}
                value={texts[language].title}
                dir={dir}
                error={wrong('title')}
                data-testid={`title-${language}`}
                onChange={(event) => set('title', event.currentTarget.value)}
              />
              <Textarea
                label={t('announcement.message')}
                value={texts[language].message}
                dir={dir}
                autosize
                minRows={2}
                error={wrong('message')}
                data-testid={`message-${language}`}
                onChange={(event) => set('message', event.currentTarget.value)}
              />
              <Editor
                label={t('announcement.html')}
                value={texts[language].html}
                name={`html-${language}`}
                dir={dir}
                error={wrong('htmlContent')}
                onChange={(text) => set('html', text)}
              />
            </Stack>
          </Tabs.Panel>
        );
      })}
    </Tabs>
  );
}
