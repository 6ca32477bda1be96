/** The form of a contract section, with a preview. */
import { Button, Group, Stack, TextInput } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { useAct } from '../app/act';
import { Problem } from '../app/problem';
import { useDraft } from '../kit/draft';
import { FormDrawer, Restored, useClosing } from '../kit/drawer';
import { details, type Section } from './sections';
import { Editor } from './editor';

interface Props {
  contractId: string;
  of?: Section;
  /** The user closes the form. */
  onClose: () => void;
  onDone: () => void;
}

export function SectionForm(props: Props) {
  return (
    <FormDrawer opened onClose={props.onClose} size="xl" title={props.of ? 'contract.edit' : 'contract.add'}>
      <Form {...props} />
    </FormDrawer>
  );
}

function Form({ contractId, of, onDone }: Props) {
  const { t } = useTranslation();
  const add = useAct('post', '/admin/create-contract-detail', [details]);
  const change = useAct('post', '/admin/update-contract-detail', [details]);
  const act = of ? change : add;
  const stored = { title: of?.title ?? '', content: of?.content ?? '' };
  const draft = useDraft(`section:${contractId}:${of?.id ?? 'new'}`, stored);
  const close = useClosing(draft);
  const { title, content } = draft.value;
  const wrong = (name: string) => act.problem?.errors.find((e) => e.field === name)?.message;
  async function save() {
    const done = of ? await change.run({ id: of.id, title, content }) : await add.run({ contractId, title, content });
    if (!done) return;
    draft.done();
    onDone();
  }
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      <Stack>
        <Restored of={draft} />
        <TextInput
          label={t('contract.sectionTitle')}
          value={title}
          required
          error={wrong('title')}
          name="title"
          dir="auto"
          data-testid="field-title"
          onChange={(event) => draft.set({ title: event.currentTarget.value })}
        />
        <Editor
          label={t('contract.content')}
          value={content}
          onChange={(text) => draft.set({ content: text })}
          name="content"
          error={wrong('content')}
        />
        <Problem of={act.problem} />
        <Group justify="flex-end">
          <Button variant="default" onClick={close}>
            {t('cancel')}
          </Button>
          <Button type="submit" loading={act.busy} disabled={!title.trim() || !draft.dirty} data-testid="section-save">
            {t('content.save')}
          </Button>
        </Group>
      </Stack>
      {act.view}
    </form>
  );
}
