/** One record: its fields, a drawer with all of them, and the difference before a change. */
import { Button, Code, CopyButton, Drawer, Group, SimpleGrid, Stack, Table, Text } from '@mantine/core';
import { useState, type ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { useTexts } from '../app/address';
import { idOf, useShown } from './drawer';
import { Fields, Value, type Column } from './fields';
import { plain } from './show';
import type { TextKey } from '../text/key';

/** Facts side by side, each with the key of its name. */
export function Facts({ children }: { children: ReactNode }) {
  return <SimpleGrid cols={{ base: 1, xs: 2, md: 3, xl: 4 }}>{children}</SimpleGrid>;
}

export function Fact({ title, children }: { title: TextKey; children: ReactNode }) {
  const { t } = useTranslation();
  return (
    <div className="fact">
      <Text size="xs" c="dimmed">
        {t(title)}
      </Text>
      {children}
    </div>
  );
}

/**
 * The whole record: the columns of its list, its other members in words, and below them, closed, the record as the
 * service sent it. That can be copied as JSON, as YAML, as a link to this page and, where curl is given, as the command
 * that creates it again.
 */
export function Whole<T extends object>({
  of,
  id = idOf(of),
  title,
  onClose,
  children,
  curl,
  columns,
}: {
  of?: T;
  /** Names the record in the address; the id of its row by default. */
  id?: string;
  title: TextKey;
  onClose: () => void;
  children?: ReactNode;
  curl?: Command;
  /** The columns in words, if no list opened the record. */
  columns?: readonly Column<T>[];
}) {
  const { t } = useTranslation();
  const close = useShown('open', of && id, onClose);
  const { form } = useTexts(); // Escape closes the form above, not this
  return (
    <Drawer opened={!!of} onClose={close} title={t(title)} position="right" size="lg" closeOnEscape={!form}>
      <Stack>
        {children}
        {of && <Fields of={of} columns={columns} />}
        {of && <Raw key={id} of={of} curl={curl} />}
      </Stack>
    </Drawer>
  );
}

/** The record with its wire names, for a report or a script. */
function Raw({ of, curl }: { of: object; curl?: Command }) {
  const { t } = useTranslation();
  const [open, setOpen] = useState(false);
  return (
    <details className="raw" onToggle={(event) => setOpen(event.currentTarget.open)} data-testid="raw">
      <summary>{t('record.raw')}</summary>
      {open && (
        <Stack gap="xs" mt="xs">
          <Copies of={of} curl={curl} />
          <Code block dir="ltr">
            {JSON.stringify(of, null, 2)}
          </Code>
        </Stack>
      )}
    </details>
  );
}

export interface Command {
  method: string;
  path: string;
  body: object;
}

/** A request for curl. URL and TOKEN are shell variables, so that no token is copied. */
export function shell({ method, path, body }: Command): string {
  const quoted = JSON.stringify(body).replaceAll("'", "'\\''");
  const asked = `curl -s -X ${method} "$URL${path}" -H "x-auth: $TOKEN"`;
  return `${asked} -H 'content-type: application/json' \\\n  -d '${quoted}'`;
}

export function Copies({ of, curl }: { of: object; curl?: Command }) {
  const { t } = useTranslation();
  const kinds = {
    JSON: () => JSON.stringify(of, null, 2),
    YAML: () => yaml(of),
    ...(curl ? { curl: () => shell(curl) } : {}),
    [t('copy.link')]: () => location.href,
  };
  return (
    <Group gap="xs">
      {Object.entries(kinds).map(([name, text]) => (
        <CopyButton key={name} value={text()}>
          {({ copied, copy }) => (
            <Button size="compact-xs" variant="default" onClick={copy}>
              {copied ? t('copied') : name}
            </Button>
          )}
        </CopyButton>
      ))}
    </Group>
  );
}

/** YAML of plain data. Every text is quoted as JSON quotes it, which YAML 1.2 reads alike (chapter 5.7). */
export function yaml(value: unknown, indent = ''): string {
  if (value === null || typeof value !== 'object') return JSON.stringify(value ?? null);
  const list = Array.isArray(value);
  const entries = Object.entries(value);
  if (entries.length === 0) return list ? '[]' : '{}';
  return entries
    .map(([key, one]) => {
      const deep = one !== null && typeof one === 'object' && Object.keys(one as object).length > 0;
      const name = list ? '-' : `${JSON.stringify(key)}:`;
      return `${indent}${name}${deep ? `\n${yaml(one, `${indent}  `)}` : ` ${yaml(one)}`}`;
    })
    .join('\n');
}

/** The old and the new record: the fields that differ, or all. names are the keys of the field names. */
export function Diff({
  before,
  after,
  all = false,
  names = {},
}: {
  before: object;
  after: object;
  all?: boolean;
  names?: Record<string, TextKey>;
}) {
  const { t } = useTranslation();
  const cell = (key: string, value: unknown) => (names[key] ? <Value name={key} of={value} /> : plain(value));
  const [old, next] = [before as Record<string, unknown>, after as Record<string, unknown>];
  const keys = [...new Set([...Object.keys(old), ...Object.keys(next)])].filter(
    (key) => all || JSON.stringify(old[key]) !== JSON.stringify(next[key]),
  );
  if (keys.length === 0)
    return (
      <Text size="sm" c="dimmed">
        {t('diff.none')}
      </Text>
    );
  return (
    <Table withTableBorder data-testid="diff" style={{ overflowWrap: 'anywhere' }}>
      <Table.Thead>
        <Table.Tr>
          <Table.Th>{t('diff.field')}</Table.Th>
          <Table.Th>{t('diff.before')}</Table.Th>
          <Table.Th>{t('diff.after')}</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {keys.map((key) => {
          const same = JSON.stringify(old[key]) === JSON.stringify(next[key]);
          return (
            <Table.Tr key={key}>
              <Table.Td>{names[key] ? t(names[key]) : <Code dir="ltr">{key}</Code>}</Table.Td>
              {same ? (
                <Table.Td colSpan={2}>{cell(key, old[key])}</Table.Td>
              ) : (
                <>
                  <Table.Td>
                    <del>{cell(key, old[key])}</del>
                  </Table.Td>
                  <Table.Td>
                    <ins>{cell(key, next[key])}</ins>
                  </Table.Td>
                </>
              )}
            </Table.Tr>
          );
        })}
      </Table.Tbody>
    </Table>
  );
}
