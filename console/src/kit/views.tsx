/** The user's settings of a list, kept in the browser: named views (filters), columns, and the height of rows. */
import { ActionIcon, Button, Group, Menu, Popover, Stack, Text, TextInput, UnstyledButton } from '@mantine/core';
import { useLocalStorage } from '@mantine/hooks';
import { IconAdjustmentsHorizontal, IconBookmark, IconTrash } from '@tabler/icons-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { Search } from '../app/address';
import { drawers } from './drawer';

const left: string[] = ['cursor', ...drawers];

interface View {
  name: string;
  search: Search;
}

/** The saved views of a list. A view is its filters, without the position and open drawers. */
export function Views({
  list,
  search,
  go,
}: {
  list: string;
  search: View['search'];
  go: (to: View['search']) => void;
}) {
  const { t } = useTranslation();
  const [opened, setOpened] = useState(false);
  const [name, setName] = useState('');
  const [views, setViews] = useLocalStorage<View[]>({ key: `castellan.views.${list}`, defaultValue: [] });
  const filters = Object.fromEntries(Object.entries(search).filter(([key]) => !left.includes(key)));
  const save = () => {
    setViews([...views.filter((v) => v.name !== name.trim()), { name: name.trim(), search: filters }]);
    setName('');
    setOpened(false);
  };
  return (
    <Popover opened={opened} onChange={setOpened} position="bottom-end" trapFocus>
      <Popover.Target>
        <Button
          variant="default"
          size="xs"
          className="quiet"
          leftSection={<IconBookmark size={14} />}
          onClick={() => setOpened(!opened)}
          data-testid="views"
        >
          {t('list.views')}
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <Stack gap="xs" w={240}>
          {views.length === 0 && (
            <Text size="sm" c="dimmed">
              {t('list.noViews')}
            </Text>
          )}
          {views.map((v) => (
            <Group key={v.name} justify="space-between" wrap="nowrap">
              <UnstyledButton
                className="view"
                onClick={() => {
                  go(v.search);
                  setOpened(false);
                }}
              >
                <bdi>{v.name}</bdi>
              </UnstyledButton>
              <ActionIcon
                variant="subtle"
                size="sm"
                aria-label={t('list.deleteView', { name: v.name })}
                onClick={() => setViews(views.filter((one) => one !== v))}
              >
                <IconTrash size={14} />
              </ActionIcon>
            </Group>
          ))}
          <form
            onSubmit={(event) => {
              event.preventDefault();
              if (name.trim()) save();
            }}
          >
            <Group align="end" gap="xs" wrap="nowrap">
              <TextInput
                size="xs"
                label={t('list.viewName')}
                value={name}
                maxLength={40}
                data-testid="view-name"
                onChange={(event) => setName(event.currentTarget.value)}
              />
              <Button size="xs" type="submit" disabled={!name.trim()} data-testid="view-save">
                {t('list.saveView')}
              </Button>
            </Group>
          </form>
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}

/** The height of rows in all lists. */
export function useDense() {
  return useLocalStorage<boolean>({ key: 'castellan.dense', defaultValue: false });
}

export interface Shown {
  id: string;
  label: string;
  shown: boolean;
  toggle: () => void;
}

/** The menu of a list's columns and of the height of rows. */
export function Look({ columns }: { columns: Shown[] }) {
  const { t } = useTranslation();
  const [dense, setDense] = useDense();
  return (
    <Menu closeOnItemClick={false} withinPortal>
      <Menu.Target>
        <ActionIcon variant="default" size={30} aria-label={t('list.columns')} data-testid="list-look">
          <IconAdjustmentsHorizontal size={16} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item role="menuitemcheckbox" aria-checked={dense} onClick={() => setDense(!dense)} data-testid="dense">
          {tick(dense)}
          {t('list.dense')}
        </Menu.Item>
        <Menu.Divider />
        <Menu.Label>{t('list.columns')}</Menu.Label>
        {columns.map((c) => (
          <Menu.Item key={c.id} role="menuitemcheckbox" aria-checked={c.shown} onClick={c.toggle}>
            {tick(c.shown)}
            {c.label}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}

const tick = (on: boolean) => (on ? '✓ ' : '  ');
