/** Bulk writes of sections, all or none. Each shows a preview of the added, changed or deleted sections. */
import { List, Stack, Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { textOf } from '../kit/show';
import type { Schemas } from '../app/api';
import { Diff } from '../kit/record';
import { Write, type Input } from '../kit/write';
import { RichText } from './richtext';

export type Section = Schemas['ContractDetail'];
export const details = '/admin/get-contract-details';
interface Pasted {
  text: string;
}
interface Replacement {
  find: string;
  put?: string;
}

const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

/** The sections of a plain text: a line that begins with # is a title, and an empty line ends a paragraph. */
export function sectionsOf(text: string): { title: string; content: string }[] {
  return text
    .split(/^#+[ \t]*/m)
    .slice(1)
    .map((part) => {
      const [title = '', ...lines] = part.split('\n');
      const paragraphs = lines
        .join('\n')
        .split(/\n\s*\n/)
        .map((p) => p.trim())
        .filter(Boolean);
      return { title: title.trim(), content: paragraphs.map((p) => `<p>${escaped(p)}</p>`).join('\n') };
    });
}

export function AddMany({ contractId }: { contractId: string }) {
  const { t } = useTranslation();
  const text = (values: Partial<Pasted>) => textOf(values.text);
  return (
    <Write
      method="post"
      path="/admin/bulk-create-contract-details"
      title="contract.addMany"
      touches={[details]}
      fields={[
        {
          name: 'text',
          title: 'contract.manyText',
          kind: 'area',
          required: true,
          help: 'contract.manyHelp',
        },
      ]}
      before={(values) => {
        const found = sectionsOf(text(values));
        return (
          <Stack gap="xs" data-testid="many">
            <Text size="sm">{t('contract.willAdd', { count: found.length })}</Text>
            {found.map((s, n) => (
              <div key={n}>
                <Text fw={700}>
                  <bdi>{s.title}</bdi>
                </Text>
                <RichText html={s.content} />
              </div>
            ))}
          </Stack>
        );
      }}
      make={(values: Pasted) => ({ contractId, details: sectionsOf(text(values)) })}
    />
  );
}

/** The sections that contain a text, after the replacement. */
function replaced(sections: Section[], values: Partial<Replacement>): Section[] {
  const [find, put] = [textOf(values.find), textOf(values.put)];
  if (!find) return [];
  return sections
    .filter((s) => s.title.includes(find) || s.content.includes(find))
    .map((s) => ({ ...s, title: s.title.replaceAll(find, put), content: s.content.replaceAll(find, put) }));
}

const names = { title: 'contract.sectionTitle', content: 'contract.content' } as const;

export function Replace({ sections }: { sections: Section[] }) {
  const { t } = useTranslation();
  const fields: Input<Replacement>[] = [
    { name: 'find', title: 'contract.find', required: true },
    { name: 'put', title: 'contract.put' },
  ];
  return (
    <Write
      method="post"
      path="/admin/bulk-update-contract-details"
      title="contract.replace"
      touches={[details]}
      fields={fields}
      before={(values) => {
        const after = replaced(sections, values);
        return (
          <Stack gap="xs" style={{ overflowWrap: 'anywhere' }}>
            <Text size="sm">{t('contract.willChange', { count: after.length })}</Text>
            {after.map((s) => {
              const { title, content } = sections.find((one) => one.id === s.id)!;
              const after = { title: s.title, content: s.content };
              return <Diff key={s.id} before={{ title, content }} after={after} names={names} />;
            })}
          </Stack>
        );
      }}
      make={(values: Replacement) => ({
        details: replaced(sections, values).map(({ id, title, content }) => ({ id, title, content })),
      })}
    />
  );
}

export function DeleteMany({ sections, onDone }: { sections: Section[]; onDone: () => void }) {
  return (
    <Write
      method="post"
      path="/admin/delete-multiple-contract-details"
      title="contract.deleteMany"
      touches={[details]}
      fields={[]}
      onDone={onDone}
      button={{ color: 'red', variant: 'light' }}
      fixed={{ ids: sections.map((s) => s.id) }}
      before={() => (
        <List>
          {sections.map((s) => (
            <List.Item key={s.id}>
              <bdi>{s.title}</bdi>
            </List.Item>
          ))}
        </List>
      )}
    />
  );
}
