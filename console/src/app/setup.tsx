/** Disabled controls and features, and live checks of the settings. */
import { Alert, Badge, Button, Card, Group, Stack, Table, Text, Title } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { Problem } from './problem';
import { sentence } from './sentence';
import { useRead, type Answer } from '../kit/read';
import { Time } from '../kit/show';
import { Wide } from '../kit/wide';
import type { TextKey } from '../text/key';

type Finding = Answer<'/admin/setup'>['data']['findings'][number];

/** The groups, the most severe first. */
const tones = { control: 'red', fault: 'orange', feature: 'yellow', accepted: 'gray', ok: 'green' } as const;
type Severity = keyof typeof tones;

export default function Setup() {
  const { t } = useTranslation();
  const [wanted, setWanted] = useState(false);
  const judged = useRead('/admin/setup');
  const checked = useRead('/admin/setup', { check: true }, { enabled: wanted });
  const setup = (checked.data ?? judged.data)?.data;
  const run = () => {
    if (wanted) void checked.refetch();
    else setWanted(true);
  };
  return (
    <Stack>
      <Group justify="space-between">
        <Title order={1} size="h3">
          {t('setup.title')}
        </Title>
        <Button onClick={run} loading={checked.isFetching} data-testid="setup-check">
          {t('setup.check')}
        </Button>
      </Group>
      <Problem of={checked.error ?? judged.error} />
      {setup && (
        <>
          {setup.mode === 'development' && <Alert color="blue">{t('setup.development')}</Alert>}
          <Text size="sm" c="dimmed">
            {setup.checkedAt ? (
              <>
                {t('setup.checkedAt')} <Time at={setup.checkedAt} />
              </>
            ) : (
              t('setup.unchecked')
            )}
          </Text>
          {(Object.keys(tones) as Severity[]).map((severity) => (
            <Findings key={severity} severity={severity} of={setup.findings.filter((f) => f.severity === severity)} />
          ))}
        </>
      )}
    </Stack>
  );
}

/** One group. The texts of the service are English in every language of the console. */
function Findings({ severity, of }: { severity: Severity; of: Finding[] }) {
  const { t } = useTranslation();
  if (of.length === 0) return null;
  const passed = severity === 'ok';
  const accepted = severity === 'accepted';
  const last: TextKey = accepted ? 'setup.reason' : 'setup.mend';
  return (
    <Card withBorder data-testid={`setup-${severity}`}>
      <Group>
        <Title order={2} size="h5">
          {t(`setup.${severity}`)}
        </Title>
        <Badge color={tones[severity]} variant="light">
          {of.length}
        </Badge>
      </Group>
      <Wide label={t(`setup.${severity}`)} minWidth={0}>
        <Table className="stacks">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>{t('setup.key')}</Table.Th>
              <Table.Th>{t('setup.state')}</Table.Th>
              {!passed && <Table.Th>{t('setup.effect')}</Table.Th>}
              {!passed && <Table.Th>{t(last)}</Table.Th>}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {of.map((f) => (
              <Table.Tr key={`${f.key} ${f.state}`}>
                <Table.Th scope="row">
                  <bdi dir="ltr">{f.key}</bdi>
                </Table.Th>
                <English text={f.state} label="setup.state" />
                {!passed && <English text={f.effect} label="setup.effect" whole />}
                {accepted ? (
                  <Table.Td dir="auto" style={{ overflowWrap: 'anywhere' }} data-label={t(last)}>
                    {f.reason}
                  </Table.Td>
                ) : (
                  !passed && <English text={f.mend} label={last} />
                )}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Wide>
    </Card>
  );
}

function English({ text, label, whole = false }: { text: string; label: TextKey; whole?: boolean }) {
  const { t } = useTranslation();
  return (
    <Table.Td style={{ overflowWrap: 'anywhere' }} data-label={t(label)}>
      <span lang="en" dir="ltr">
        {whole ? sentence(text, 'en') : text}
      </span>
    </Table.Td>
  );
}
