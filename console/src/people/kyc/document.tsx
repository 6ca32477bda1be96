/** One document: its image, in memory only, and the change of its data. */
import { Button, Text } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { Problem } from '../../app/problem';
import type { Row } from '../../kit/list';
import { fetchPicture, Picture, Watermark } from '../../kit/picture';
import { Write } from '../../kit/write';

export type Document = Row<'/user/get-documents'>;

/** The path of a document's bytes. */
export const fileOf = (id: string) =>
  `/admin/get-document-file?documentInfo=${encodeURIComponent(JSON.stringify({ id }))}`;

export const isPicture = (d: Document) => d.mimeType.startsWith('image/');

/** Shows an image only on request, because each view is audited. A PDF can only be saved. */
export function Look({ of }: { of: Document }) {
  const { t } = useTranslation();
  const [open, setOpen] = useState('');
  const [problem, setProblem] = useState<unknown>();
  async function save() {
    setProblem(undefined);
    try {
      const url = await fetchPicture(fileOf(of.id));
      const link = document.createElement('a');
      link.href = url;
      link.download = of.name;
      link.click();
      URL.revokeObjectURL(url);
    } catch (error) {
      setProblem(error);
    }
  }
  if (!isPicture(of)) {
    return (
      <>
        <Button size="xs" w="fit-content" variant="default" onClick={() => void save()}>
          {t('documents.download')}
        </Button>
        <Text size="xs" c="dimmed" flex={1} miw={160}>
          {t('documents.download.lead')}
        </Text>
        <Problem of={problem} />
      </>
    );
  }
  if (open !== of.id) {
    return (
      <Button size="xs" w="fit-content" variant="default" onClick={() => setOpen(of.id)} data-testid="look">
        {t('documents.look')}
      </Button>
    );
  }
  return (
    <div className="shown-document" data-testid="looked">
      <Picture address={fileOf(of.id)} alt={of.name} />
      <Watermark />
    </div>
  );
}

export function ChangeDocument({
  of,
  onDone,
  button,
}: {
  of: Document;
  onDone?: (changed: Document) => void;
  button?: object;
}) {
  return (
    <div>
      <Write
        key={of.id}
        method="post"
        path="/user/update-document"
        title="documents.change"
        button={button}
        touches={['/user/get-documents']}
        fixed={{ id: of.id, userId: of.userId }}
        initial={{ description: of.description ?? undefined, status: of.status, reason: of.reason ?? undefined }}
        fields={[
          { name: 'description', title: 'documents.description', kind: 'area' },
          { name: 'status', title: 'documents.status', help: 'documents.status.help' },
          { name: 'reason', title: 'documents.reason', kind: 'area' },
        ]}
        onDone={(answer) => onDone?.((answer as { data: Document }).data)}
      />
    </div>
  );
}
