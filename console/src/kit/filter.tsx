/**
 * The filters above a list: one search field, and the others behind a button. The filters in effect are shown, each
 * with a button that removes it. A typed value goes to the address on Enter or on blur.
 */
import { Button, CloseButton, Group, Pill, Select, TextInput, useMatches } from '@mantine/core';
import { useDisclosure, useHotkeys } from '@mantine/hooks';
import { IconFilter, IconSearch } from '@tabler/icons-react';
import { useRef, type ReactNode, type Ref } from 'react';
import { useTranslation } from 'react-i18next';
import { labelled, type Option } from './show';
import type { TextKey } from '../text/key';

export interface Filter {
  name: string;
  title: TextKey;
  /** Key of the placeholder, which describes the expected input. */
  hint?: TextKey;
  /** Normalizes the input: for example, removes the spaces of a number. */
  clean?: (text: string) => string;
  /** date: a day, as 2026-11-22. flag: yes or no. A list is a choice. Otherwise text. */
  kind?: 'text' | 'date' | 'flag' | readonly (string | Option)[];
}

type Values = Record<string, string | undefined>;

/** One search field for several filters: the text decides which of them it sets. */
export interface Find {
  /** Key of the placeholder. */
  hint: TextKey;
  /** The filters that the field can set. */
  names: string[];
  read: (text: string) => Values;
}

const typed = ({ kind = 'text' }: Filter) => kind === 'text';

export function Filters(props: {
  /** The name of the list. */
  label: string;
  filters: Filter[];
  /** Filters that are always shown. */
  needs: string[];
  find?: Find;
  values: Values;
  onChange: (v: Values) => void;
  /** At the end of the line. */
  children?: ReactNode;
}) {
  const { filters, needs, find, values, onChange } = props;
  const { t } = useTranslation();
  const [open, panel] = useDisclosure(false);
  const first = useRef<HTMLInputElement>(null);
  useHotkeys([['/', () => first.current?.focus()]]);
  const main = find ? undefined : (filters.find((f) => needs.includes(f.name) && typed(f)) ?? filters.find(typed));
  const phone = useMatches({ base: true, xs: false });
  const few = !phone && !find && filters.length <= 3;
  const inline = filters.filter((f) => few || f === main || needs.includes(f.name));
  const others = filters.filter((f) => !inline.includes(f));
  const set = others.filter(({ name }) => values[name] && !find?.names.includes(name));
  const any = filters.some(({ name }) => values[name]);
  const none = Object.fromEntries(filters.map(({ name }) => [name, undefined]));
  const field = (f: Filter) => (
    <Field key={f.name} of={f} value={values[f.name]} first={f === main ? first : undefined} onChange={onChange} />
  );
  return (
    <div role="search" aria-label={props.label}>
      <Group align="end" gap="xs" className="finds">
        {find && <FindField find={find} values={values} first={first} onChange={(found) => onChange(found)} />}
        {inline.map(field)}
        {others.length > 0 && (
          <Button
            variant="default"
            size="xs"
            className={set.length > 0 ? undefined : 'quiet'}
            leftSection={<IconFilter size={14} />}
            aria-expanded={open}
            onClick={panel.toggle}
            data-testid="filters"
          >
            {set.length > 0 ? t('list.filtersSet', { count: set.length }) : t('list.filters')}
          </Button>
        )}
        {any && (
          <Button size="xs" variant="subtle" data-testid="clear" onClick={() => onChange(none)}>
            {t('list.clear')}
          </Button>
        )}
        <Group gap="xs" ms="auto" className="tools">
          {props.children}
        </Group>
      </Group>
      {open && (
        <Group align="end" gap="xs" mt="xs" className="filters">
          {others.map(field)}
        </Group>
      )}
      {!open && set.length > 0 && (
        <Group gap={6} mt="xs">
          {set.map((f) => (
            <Pill
              key={f.name}
              withRemoveButton
              removeButtonProps={{
                'aria-label': `${t('list.clear')}: ${t(f.title)}`,
                'aria-hidden': false,
                tabIndex: 0,
              }}
              onRemove={() => onChange({ [f.name]: undefined })}
            >
              {t(f.title)}: <bdi>{choices(f, t).find((o) => o.value === values[f.name])?.label ?? values[f.name]}</bdi>
            </Pill>
          ))}
        </Group>
      )}
    </div>
  );
}

/** The options of a filter that is a choice. */
function choices({ kind = 'text' }: Filter, t: ReturnType<typeof useTranslation>['t']): Option[] {
  if (kind === 'text' || kind === 'date') return [];
  if (kind !== 'flag') return labelled(kind, t);
  return [
    { value: 'true', label: t('yes') },
    { value: 'false', label: t('no') },
  ];
}

function FindField({
  find: { names, hint, read },
  values,
  first,
  onChange,
}: {
  find: Find;
  values: Values;
  first: Ref<HTMLInputElement>;
  onChange: (values: Values) => void;
}) {
  const { t } = useTranslation();
  const value = names.map((name) => values[name]).find(Boolean) ?? '';
  const none = Object.fromEntries(names.map((name) => [name, undefined]));
  const go = (text: string) => {
    if (text.trim() !== value) onChange({ ...none, ...(text.trim() ? read(text.trim()) : {}) });
  };
  return (
    <TextInput
      key={value}
      ref={first}
      size="xs"
      w={280}
      aria-label={t('list.find')}
      placeholder={t(hint)}
      leftSection={<IconSearch size={14} />}
      rightSection={value && <CloseButton size="xs" aria-label={t('list.clear')} onClick={() => go('')} />}
      defaultValue={value}
      data-testid="find"
      onBlur={(event) => go(event.currentTarget.value)}
      onKeyDown={(event) => {
        if (event.key === 'Enter') go(event.currentTarget.value);
      }}
    />
  );
}

function Field({
  of: filter,
  value,
  first,
  onChange,
}: {
  of: Filter;
  value: string | undefined;
  first?: Ref<HTMLInputElement>;
  onChange: (v: Values) => void;
}) {
  const { t } = useTranslation();
  const { name, title, hint, kind = 'text', clean = (text: string) => text } = filter;
  const set = (next: string) => {
    if ((value ?? '') !== next) onChange({ [name]: next || undefined });
  };
  if (kind !== 'text' && kind !== 'date') {
    return (
      <Select
        label={t(title)}
        data={choices(filter, t)}
        placeholder={t('list.any')}
        value={value ?? null}
        clearable
        size="xs"
        w={150}
        onChange={(chosen) => set(chosen ?? '')}
        data-testid={`filter-${name}`}
      />
    );
  }
  return (
    <TextInput
      key={value ?? ''}
      ref={first}
      label={t(title)}
      size="xs"
      w={/id$/i.test(name) ? 250 : 150}
      type={kind === 'date' ? 'date' : 'text'}
      placeholder={hint && t(hint)}
      defaultValue={value ?? ''}
      data-testid={`filter-${name}`}
      onBlur={(event) => set(clean(event.currentTarget.value.trim()))}
      onKeyDown={(event) => {
        if (event.key === 'Enter') set(clean(event.currentTarget.value.trim()));
      }}
    />
  );
}
