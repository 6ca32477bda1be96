/** The parts of both explanations: the inputs above, the evaluated rules or policies below. */
import { Anchor, Group, Stack, Table, Text, Title } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { Problem } from '../app/problem';
import { useMay } from '../app/session';
import { Question, type Asked } from './question';
import { Wide } from '../kit/wide';
import type { TextKey } from '../text/key';

/** area is the first word of the text keys. back links to the list of rules or policies, for users who may read it. */
export function Explained({
  area,
  back,
  needs,
  fields,
  error,
  children,
}: {
  area: 'firewall' | 'mfa' | 'gateway';
  back: string;
  needs: string;
  fields: Asked[];
  error: unknown;
  children: ReactNode;
}) {
  const { t } = useTranslation();
  const may = useMay();
  return (
    <Stack>
      <Group justify="space-between">
        <Title order={1} size="h3">
          {t(`${area}Why.title`)}
        </Title>
        {may(needs) && (
          <Anchor component={Link} to={back} size="sm">
            {t(`${area}.title`)}
          </Anchor>
        )}
      </Group>
      <Text size="sm" c="dimmed">
        {t(`${area}Why.lead`)}
      </Text>
      <Question fields={fields} />
      <Problem of={error} />
      {children}
    </Stack>
  );
}

/** A row for each rule or policy, with the reason. */
export function Verdicts({ heads, rows }: { heads: TextKey[]; rows: { key: string | number; cells: ReactNode[] }[] }) {
  const { t } = useTranslation();
  return (
    <Wide label={t('firewallWhy.reason')} minWidth={600}>
      <Table striped>
        <Table.Thead>
          <Table.Tr>
            {heads.map((head) => (
              <Table.Th key={head}>{t(head)}</Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map(({ key, cells }) => (
            <Table.Tr key={key} data-testid="verdict">
              {cells.map((cell, n) => (
                <Table.Td key={heads[n]}>{cell}</Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Wide>
  );
}
