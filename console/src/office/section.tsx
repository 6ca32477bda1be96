/** The form of a contract section, with a preview. */
import { Button, Drawer, Group, Stack, TextInput } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useAct } from '../app/act';
import { Problem } from '../app/problem';
import { details, type Section } from './sections';
import { Editor } from './editor';

export function SectionForm({ contractId, of, onClose }: { contractId: string; of?: Section; onClose: () => void }) {
  const { t } = useTranslation();
  const add = useAct('post', '/admin/create-contract-detail', [details]);
  const change = useAct('post', '/admin/update-contract-detail', [details]);
  const act = of ? change : add;
  const [title, setTitle] = useState(of?.title ?? '');
  const [content, setContent] = useState(of?.content ?? '');
  const wrong = (name: string) => act.problem?.errors.find((e) => e.field === name)?.message;
  async function save() {
    const done = of ? await change.run({ id: of.id, title, content }) : await add.run({ contractId, title, content });
    if (done) onClose();
  }
  return (
    <Drawer opened onClose={onClose} position="right" size="xl" title={t(of ? 'contract.edit' : 'contract.add')}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <Stack>
          <TextInput
            label={t('contract.sectionTitle')}
            value={title}
            required
            error={wrong('title')}
            name="title"
            dir="auto"
            data-testid="field-title"
            onChange={(event) => setTitle(event.currentTarget.value)}
          />
          <Editor
            label={t('contract.content')}
            value={content}
            onChange={setContent}
            name="content"
            error={wrong('content')}
          />
          <Problem of={act.problem} />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              {t('cancel')}
            </Button>
            <Button
              type="submit"
              loading={act.busy}
              disabled={!title.trim() || (content === of?.content && title === of.title)}
              data-testid="section-save"
            >
              {t('content.save')}
            </Button>
          </Group>
        </Stack>
        {act.view}
      </form>
    </Drawer>
  );
}
