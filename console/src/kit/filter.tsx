/** The filters above a list. A typed value goes to the address on Enter or on blur. */
import { Button, Group, Select, TextInput } from '@mantine/core';
import { useHotkeys } from '@mantine/hooks';
import { useRef } from 'react';
import { useTranslation } from 'react-i18next';
import { labelled, type Option } from './show';

export interface Filter {
  name: string;
  title: string;
  /** Key of the placeholder, which describes the expected input. */
  hint?: string;
  /** Normalizes the input: for example, removes the spaces of a number. */
  clean?: (text: string) => string;
  /** date: a day, as 2026-11-22. flag: yes or no. A list is a choice. Otherwise text. */
  kind?: 'text' | 'date' | 'flag' | readonly (string | Option)[];
}

type Values = Record<string, string | undefined>;

export function Filters({
  filters,
  values,
  onChange,
}: {
  filters: Filter[];
  values: Values;
  onChange: (v: Values) => void;
}) {
  const { t } = useTranslation();
  const first = useRef<HTMLInputElement>(null);
  useHotkeys([['/', () => first.current?.focus()]]);
  const set = (name: string, value: string) => {
    if ((values[name] ?? '') !== value) onChange({ [name]: value || undefined });
  };
  const any = filters.some(({ name }) => values[name]);
  return (
    <Group align="end" gap="xs" role="search">
      {filters.map(({ name, title, hint, kind = 'text', clean = (text: string) => text }, n) => {
        const label = t(title);
        if (kind !== 'text' && kind !== 'date') {
          const options =
            kind === 'flag'
              ? [
                  { value: 'true', label: t('yes') },
                  { value: 'false', label: t('no') },
                ]
              : labelled(kind, t);
          return (
            <Select
              key={name}
              label={label}
              data={options}
              value={values[name] ?? null}
              clearable
              size="xs"
              w={150}
              onChange={(value) => set(name, value ?? '')}
              data-testid={`filter-${name}`}
            />
          );
        }
        return (
          <TextInput
            key={`${name}=${values[name] ?? ''}`}
            ref={n === 0 ? first : undefined}
            label={label}
            size="xs"
            w={/id$/i.test(name) ? 250 : 150}
            type={kind === 'date' ? 'date' : 'text'}
            placeholder={hint && t(hint)}
            defaultValue={values[name] ?? ''}
            data-testid={`filter-${name}`}
            onBlur={(event) => set(name, clean(event.currentTarget.value.trim()))}
            onKeyDown={(event) => {
              if (event.key === 'Enter') set(name, clean(event.currentTarget.value.trim()));
            }}
          />
        );
      })}
      {any && (
        <Button
          size="xs"
          variant="subtle"
          data-testid="clear"
          onClick={() => onChange(Object.fromEntries(filters.map(({ name }) => [name, undefined])))}
        >
          {t('list.clear')}
        </Button>
      )}
    </Group>
  );
}
