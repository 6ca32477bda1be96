/** Public images: upload one and copy its public URL. */
import { Group, Paper, SimpleGrid, Stack, Text, Title } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useMay } from '../app/session';
import { useRead } from '../kit/read';
import { Id } from '../kit/show';
import { Write } from '../kit/write';
import { said } from '../kit/sheets';
import { Shown } from './richtext';

const parameters = '/admin/get-parameters';

export default function CDN() {
  const { t } = useTranslation();
  const may = useMay();
  const set = useRead(parameters, { code: 'CDN' }, { enabled: may(`GET ${parameters}`) });
  const folders = (set.data?.[0]?.json as { folderTypes?: string[] } | undefined)?.folderTypes;
  const [uploaded, setUploaded] = useState<string[]>([]);
  return (
    <Stack>
      <Group justify="space-between">
        <Title order={1} size="h3">
          {t('cdn.title')}
        </Title>
        <Write
          method="post"
          path="/admin/cdn/upload"
          title="cdn.upload"
          button={{ variant: 'filled' }}
          initial={{ useSuffix: true }}
          fields={[
            {
              name: 'imageData',
              title: 'cdn.picture',
              kind: 'file',
              required: true,
              accept: 'image/png,image/jpeg,image/webp,image/gif',
            },
            { name: 'imageName', title: 'cdn.name', required: true, help: 'cdn.nameHelp' },
            { name: 'folderType', title: 'cdn.folder', required: true, kind: folders ?? 'text' },
            { name: 'useSuffix', title: 'cdn.suffix', kind: 'flag', help: 'cdn.suffixHelp' },
          ]}
          onDone={(answer) => {
            const { imageUrl } = said<{ imageUrl: string | null }>(answer);
            if (imageUrl) setUploaded((old) => [imageUrl, ...old]);
          }}
        />
      </Group>
      <Text size="sm">{t('cdn.lead')}</Text>
      {uploaded.length === 0 && (
        <Paper withBorder className="empty">
          <Text c="dimmed">{t('cdn.none')}</Text>
        </Paper>
      )}
      <SimpleGrid cols={{ base: 1, sm: 2, lg: 3 }}>
        {uploaded.map((address) => (
          <Paper key={address} withBorder p="sm" data-testid="uploaded">
            <Stack gap="xs">
              <Shown address={address} alt={t('cdn.uploaded')} />
              <div style={{ overflowWrap: 'anywhere' }}>
                <Id of={address} />
              </div>
            </Stack>
          </Paper>
        ))}
      </SimpleGrid>
    </Stack>
  );
}
