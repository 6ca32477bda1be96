/** The values that the user sees before approving a request: each is a part of the request with a label. */
import { ActionIcon, Button, Fieldset, Group, Input, Select, Stack, Text, TextInput } from '@mantine/core';
import { IconTrash } from '@tabler/icons-react';
import { useTranslation } from 'react-i18next';
import type { Schemas } from '../app/api';
import type { Custom } from '../kit/write';
import type { TextKey } from '../text/key';

type Row = Schemas['GuardRowInput'];

const sources = ['path', 'query', 'header'] as const;
/** The numbers of the segments of a path, from 0. */
const segments = Array.from({ length: 32 }, (_, n) => String(n));
const empty = { key: '', label: '', from: 'query', name: '' } as unknown as Row;

export function ShownValues({ label, description, error, value, onChange }: Custom) {
  const { t } = useTranslation();
  const rows = (value as Row[] | undefined) ?? [];
  const change = (n: number, by: Partial<Row>) => onChange(rows.map((row, i) => (i === n ? { ...row, ...by } : row)));
  /** A segment of the path has a number, the others have a name. */
  const from = ({ key, label: text }: Row, source: string | null) =>
    source === 'path' ? { key, label: text, from: source, index: 0 } : { key, label: text, from: source, name: '' };
  /** The input of a text of a row; title is the key of its label. */
  const text = (n: number, name: 'label' | 'key' | 'name', title: TextKey, flex: string) => (
    <TextInput
      label={t(title)}
      required
      dir={name === 'label' ? undefined : 'ltr'}
      flex={flex}
      data-testid={`row-${name}-${n}`}
      value={rows[n]?.[name]}
      onChange={(event) => change(n, { [name]: event.currentTarget.value })}
    />
  );
  return (
    <Fieldset legend={label} data-testid="field-rows">
      <Stack gap="sm">
        <Input.Description>{description}</Input.Description>
        {rows.map((row, n) => (
          <Group key={n} gap="xs" align="end" role="group" aria-label={`${t('gateway.value')} ${n + 1}`}>
            {text(n, 'label', 'gateway.valueLabel', '1 1 7rem')}
            {text(n, 'key', 'gateway.valueKey', '1 1 6rem')}
            <Select
              label={t('gateway.valueFrom')}
              allowDeselect={false}
              flex="0 1 7rem"
              data-testid={`row-from-${n}`}
              data={sources.map((source) => ({ value: source, label: t(`gateway.from.${source}`) }))}
              value={row.from}
              onChange={(source) => onChange(rows.map((r, i) => (i === n ? from(r, source) : r)))}
            />
            {row.from === 'path' ? (
              <Select
                label={t('gateway.valueIndex')}
                allowDeselect={false}
                flex="1 1 5rem"
                data-testid={`row-index-${n}`}
                data={segments}
                value={segments[row.index] ?? null}
                onChange={(segment) => change(n, { index: segments.indexOf(segment ?? '') })}
              />
            ) : (
              text(n, 'name', 'gateway.valueName', '1 1 5rem')
            )}
            <ActionIcon
              variant="default"
              size="input-sm"
              aria-label={`${t('gateway.valueRemove')} ${n + 1}`}
              onClick={() => onChange(rows.filter((_, i) => i !== n))}
            >
              <IconTrash size={16} />
            </ActionIcon>
          </Group>
        ))}
        {error && (
          <Text size="sm" c="var(--mantine-color-error)" role="alert">
            {error}
          </Text>
        )}
        <Button
          variant="default"
          size="xs"
          style={{ alignSelf: 'start' }}
          data-testid="row-add"
          onClick={() => onChange([...rows, empty])}
        >
          {t('gateway.valueAdd')}
        </Button>
      </Stack>
    </Fieldset>
  );
}
