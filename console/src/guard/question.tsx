/** The inputs of an explanation. They are in the address, so that an explanation is a link. */
import { Autocomplete, Button, Group, TextInput } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { texts, useTexts } from '../app/address';
import type { TextKey } from '../text/key';

export interface Asked {
  name: string;
  title: TextKey;
  /** An example of a value. */
  hint?: string;
  required?: boolean;
  /** Suggested values; other values can be typed too. */
  options?: string[];
}

export function Question({ fields }: { fields: Asked[] }) {
  const { t } = useTranslation();
  const search = useTexts();
  const navigate = useNavigate();
  const [typed, setTyped] = useState<Record<string, string>>(() => texts(search));
  return (
    <form
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        const next = Object.fromEntries(fields.map(({ name }) => [name, typed[name]?.trim() || undefined]));
        void navigate({ to: '.', search: next });
      }}
    >
      <Group align="end" gap="xs">
        {fields.map(({ name, title, hint, required, options }) => {
          const common = {
            label: t(title),
            placeholder: hint,
            required,
            size: 'xs',
            w: options ? 280 : 220,
            dir: 'ltr' as const,
            value: typed[name] ?? '',
            'data-testid': `ask-${name}`,
          };
          return options ? (
            <Autocomplete
              key={name}
              {...common}
              data={options}
              limit={50}
              onChange={(v) => setTyped({ ...typed, [name]: v })}
            />
          ) : (
            <TextInput key={name} {...common} onChange={(e) => setTyped({ ...typed, [name]: e.currentTarget.value })} />
          );
        })}
        <Button type="submit" size="xs" data-testid="ask">
          {t('explain.ask')}
        </Button>
      </Group>
    </form>
  );
}
