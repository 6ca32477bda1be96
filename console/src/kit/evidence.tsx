/**
 * The evidence of a challenge: the values that its owner read, how it ended, and whether document and signatures are
 * intact. The browser verifies them itself; castellan intent verify checks the saved file with all rules.
 */
import { Alert, Button, Group, Modal, Stack, Table, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { Schemas } from '../app/api';
import { Problem } from '../app/problem';
import { useMay } from '../app/session';
import { save } from './csv';
import { useRead } from './read';
import { Coded, Status, Time } from './show';
import { verify, type Document } from './verify';

const path = '/admin/challenges/{id}/evidence';
type Of = Schemas['Evidence'];

export function Evidence({ id }: { id: string }) {
  const { t } = useTranslation();
  const may = useMay();
  const [open, setOpen] = useState(false);
  const read = useRead(path, undefined, { places: { id }, enabled: open });
  const of = read.data?.data;
  if (!may(`GET ${path}`)) return null;
  return (
    <>
      <Button size="xs" variant="default" w="fit-content" onClick={() => setOpen(true)} data-testid="evidence">
        {t('evidence.show')}
      </Button>
      <Modal opened={open} onClose={() => setOpen(false)} title={t('evidence.title')} size="lg">
        <Problem of={read.error} />
        {of && <Shown of={of} id={id} />}
      </Modal>
    </>
  );
}

function Shown({ of, id }: { of: Of; id: string }) {
  const { t } = useTranslation();
  const verdict = useQuery({ queryKey: ['verified', of], queryFn: () => verify(of) }).data;
  const document = JSON.parse(of.document) as Document;
  const colour = verdict === 'valid' || verdict === 'unsigned' ? 'green' : verdict === 'unknown' ? 'yellow' : 'red';
  return (
    <Stack data-testid="evidence-of">
      {verdict && (
        <Alert color={colour} data-testid="verdict" data-verdict={verdict}>
          {t(`evidence.${verdict}`)}
        </Alert>
      )}
      <Title order={3} size="h4">
        <bdi>{document.title}</bdi>
      </Title>
      <Table>
        <Table.Tbody>
          {document.rows.map((row) => (
            <Table.Tr key={row.key} data-testid="evidence-row">
              <Table.Th scope="row">
                <bdi>{row.label || row.key}</bdi>
              </Table.Th>
              <Table.Td style={{ overflowWrap: 'anywhere' }}>
                <bdi>{row.value}</bdi>
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      <Group gap="xs">
        <Text size="sm">{t('evidence.outcome')}</Text>
        <Status of={of.outcome.state} />
      </Group>
      {of.proofs.length > 0 && <Text size="sm">{t('evidence.methods')}</Text>}
      {of.proofs.map((p) => (
        <Group key={`${p.method} ${p.at}`} gap="xs">
          <span>{t(`method.${p.method}`, { defaultValue: p.method })}</span>
          <Time at={p.at} />
          {p.deviceId && (
            <Text size="sm">
              {t('evidence.device')} <Coded of={p.deviceId} />
            </Text>
          )}
        </Group>
      ))}
      <Text size="sm" c="dimmed">
        {t('evidence.saveLead')}
      </Text>
      <Button
        w="fit-content"
        onClick={() => save(`evidence-${id}.json`, JSON.stringify(of, null, 2), 'application/json')}
        data-testid="evidence-save"
      >
        {t('evidence.save')}
      </Button>
    </Stack>
  );
}
