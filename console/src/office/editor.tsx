/** An editor for simple HTML, with a preview beside it. */
import { Button, Group, Paper, SimpleGrid, Stack, Text, Textarea } from '@mantine/core';
import { useRef, type KeyboardEvent, type ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { RichText } from './richtext';
import type { TextKey } from '../text/key';

interface Tool {
  name: string;
  title: TextKey;
  before: string;
  after: string;
  key?: string;
}

const tools: Tool[] = [
  { name: 'b', title: 'content.bold', before: '<b>', after: '</b>', key: 'b' },
  { name: 'i', title: 'content.italic', before: '<i>', after: '</i>', key: 'i' },
  { name: 'h2', title: 'content.heading', before: '<h2>', after: '</h2>' },
  { name: 'p', title: 'content.paragraph', before: '<p>', after: '</p>' },
  { name: 'li', title: 'content.list', before: '<ul>\n<li>', after: '</li>\n</ul>' },
  { name: 'a', title: 'content.link', before: '<a href="https://">', after: '</a>' },
];

export function Editor({
  label,
  value,
  onChange,
  name,
  dir = 'auto',
  error,
  extra,
}: {
  label: string;
  value: string;
  onChange: (text: string) => void;
  name: string;
  dir?: 'auto' | 'rtl' | 'ltr';
  error?: string;
  extra?: ReactNode;
}) {
  const { t } = useTranslation();
  const area = useRef<HTMLTextAreaElement>(null);
  function wrap({ before, after }: Tool) {
    const field = area.current;
    if (!field) return;
    const [from, to] = [field.selectionStart, field.selectionEnd];
    onChange(value.slice(0, from) + before + value.slice(from, to) + after + value.slice(to));
    requestAnimationFrame(() => {
      field.focus();
      field.setSelectionRange(from + before.length, to + before.length);
    });
  }
  function press(event: KeyboardEvent) {
    const tool = (event.ctrlKey || event.metaKey) && tools.find((one) => one.key === event.key.toLowerCase());
    if (!tool) return;
    event.preventDefault();
    wrap(tool);
  }
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }}>
      <Stack gap="xs">
        <Group gap={4} role="toolbar" aria-label={t('content.tools')}>
          {tools.map((tool) => (
            <Button
              key={tool.name}
              size="compact-xs"
              variant="default"
              onClick={() => wrap(tool)}
              data-testid={`tool-${tool.name}`}
            >
              {t(tool.title)}
            </Button>
          ))}
        </Group>
        <Textarea
          ref={area}
          label={label}
          value={value}
          dir={dir}
          autosize
          minRows={8}
          maxRows={20}
          error={error}
          name={name}
          data-testid={`field-${name}`}
          onKeyDown={press}
          onChange={(event) => onChange(event.currentTarget.value)}
        />
        {extra}
      </Stack>
      <Stack gap="xs">
        <Text size="sm" fw={500}>
          {t('content.preview')}
        </Text>
        <Paper withBorder p="sm" mih={120}>
          {value.trim() ? (
            <RichText html={value} dir={dir} />
          ) : (
            <Text size="sm" c="dimmed">
              {t('content.empty')}
            </Text>
          )}
        </Paper>
      </Stack>
    </SimpleGrid>
  );
}
