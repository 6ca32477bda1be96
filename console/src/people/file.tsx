/** The file of a document. Each view is audited, so it is fetched only on request. */
import { Box, Button, Group } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { Problem } from '../app/problem';
import { useMay } from '../app/session';
import { fetchPicture, Picture, Watermark } from '../kit/picture';

export function File({ of }: { of: { id: string; mimeType: string; name: string } }) {
  const { t } = useTranslation();
  const may = useMay();
  const [shown, setShown] = useState(false);
  const [problem, setProblem] = useState<unknown>();
  if (!may('GET /admin/get-document-file')) return null;
  const address = `/admin/get-document-file?documentInfo=${encodeURIComponent(JSON.stringify({ id: of.id }))}`;
  const image = of.mimeType.startsWith('image/');
  if (shown) {
    return (
      <Box pos="relative">
        <Picture address={address} alt={of.name} />
        <Watermark />
      </Box>
    );
  }
  async function save() {
    setProblem(undefined);
    try {
      const link = document.createElement('a');
      link.href = await fetchPicture(address);
      link.download = of.name;
      link.click();
      URL.revokeObjectURL(link.href);
    } catch (error) {
      setProblem(error);
    }
  }
  return (
    <Group>
      <Button
        size="xs"
        variant="default"
        onClick={() => (image ? setShown(true) : void save())}
        data-testid="show-file"
      >
        {t(image ? 'user.file.show' : 'user.file.save')}
      </Button>
      <Problem of={problem} />
    </Group>
  );
}
