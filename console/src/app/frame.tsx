/** The frame of every screen: menu by permissions, palette, language, light and dark theme. */
import {
  ActionIcon,
  Anchor,
  AppShell,
  Burger,
  Button,
  Group,
  Kbd,
  Loader,
  Menu,
  NavLink,
  ScrollArea,
  Stack,
  Text,
  Title,
  useMantineColorScheme,
} from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { Notifications, notifications } from '@mantine/notifications';
import { spotlight } from '@mantine/spotlight';
import { IconLanguage, IconLogout, IconMoon, IconSearch } from '@tabler/icons-react';
import { Link, Outlet, useRouterState } from '@tanstack/react-router';
import { Suspense, useEffect } from 'react';
import { useTranslation } from 'react-i18next';
import { client } from './api';
import { Again } from './deferred';
import { languages, speak, type Language } from './i18n';
import { Palette } from './palette';
import { usePermissions } from './permissions';
import { Problem } from './problem';
import { offeredScreens, type Screen } from './screen';
import { session, useMay, useSession } from './session';

const groups: Screen['group'][] = ['work', 'people', 'money', 'content', 'security', 'system', 'own'];

export default function Frame() {
  const { t } = useTranslation();
  const { may } = useSession();
  const permissions = usePermissions();
  const [opened, menu] = useDisclosure();
  const path = useRouterState({ select: (state) => state.location.pathname });
  useEffect(() => menu.close(), [path]);
  return (
    <AppShell
      header={{ height: 52 }}
      navbar={{ width: 230, breakpoint: 'sm', collapsed: { mobile: !opened } }}
      padding="md"
    >
      <AppShell.Header px="md">
        <Group h="100%" justify="space-between" wrap="nowrap">
          <Group gap="sm" wrap="nowrap">
            <Burger opened={opened} onClick={menu.toggle} hiddenFrom="sm" size="sm" aria-label={t('menu')} />
            <Text fw={700}>Castellan</Text>
          </Group>
          <Tools />
        </Group>
      </AppShell.Header>
      <AppShell.Navbar>
        <ScrollArea component="nav" aria-label={t('menu')} p="xs">
          {may && groups.map((group) => <Part key={group} group={group} />)}
        </ScrollArea>
      </AppShell.Navbar>
      <AppShell.Main>
        {may ? (
          <Suspense fallback={<Loader />}>
            <Outlet />
          </Suspense>
        ) : permissions.error ? (
          <Again of={permissions.error} onClick={() => permissions.refetch()} />
        ) : (
          <Loader aria-label={t('loading')} />
        )}
      </AppShell.Main>
      {may && <Palette />}
      {/* Inside the routes, because it may show links. */}
      <Notifications position="bottom-right" />
    </AppShell>
  );
}

/** Otherwise the link of /me would also be marked at /me/account. */
const exactly = { exact: true, includeSearch: false };

function Part({ group }: { group: Screen['group'] }) {
  const { t } = useTranslation();
  const may = useMay();
  const path = useRouterState({ select: (state) => state.location.pathname.replace(/^.*?\/console/, '') || '/' });
  const shown = offeredScreens(may).filter((s) => s.group === group);
  // The screen itself, or the screen that linked to it; never two: /me is not open when /me/account is.
  const above = shown.filter((s) => s.path === path || (s.path !== '/' && path.startsWith(`${s.path}/`)));
  const here = above.sort((a, b) => b.path.length - a.path.length)[0];
  if (shown.length === 0) return null;
  return (
    <>
      <Title order={2} size="xs" c="dimmed" tt="uppercase" px="sm" pt="sm">
        {t(`group.${group}`)}
      </Title>
      {shown.map((s) => (
        <NavLink
          key={s.path}
          component={Link}
          to={s.path as string}
          activeOptions={exactly}
          label={t(s.title)}
          py={6}
          data-testid={`nav-${s.path}`}
          active={s === here}
        />
      ))}
    </>
  );
}

function Tools() {
  const { t, i18n } = useTranslation();
  const { toggleColorScheme } = useMantineColorScheme();
  return (
    <Group gap="xs" wrap="nowrap">
      <Button
        variant="default"
        size="xs"
        leftSection={<IconSearch size={14} />}
        onClick={spotlight.open}
        data-testid="palette"
        visibleFrom="xs"
        rightSection={<Kbd size="xs">Ctrl K</Kbd>}
      >
        {t('palette.title')}
      </Button>
      <ActionIcon variant="default" aria-label={t('palette.title')} onClick={spotlight.open} hiddenFrom="xs">
        <IconSearch size={16} />
      </ActionIcon>
      <Menu>
        <Menu.Target>
          <ActionIcon variant="default" aria-label={t('language')}>
            <IconLanguage size={16} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          {Object.entries(languages).map(([code, name]) => (
            <Menu.Item
              key={code}
              lang={code}
              onClick={() => {
                speak(code as Language).catch((error: unknown) =>
                  notifications.show({ color: 'red', message: <Problem of={error} /> }),
                );
              }}
              disabled={i18n.language === code}
              data-testid={`language-${code}`}
            >
              {name}
            </Menu.Item>
          ))}
        </Menu.Dropdown>
      </Menu>
      <ActionIcon variant="default" aria-label={t('theme')} onClick={toggleColorScheme} data-testid="theme">
        <IconMoon size={16} />
      </ActionIcon>
      <ActionIcon
        variant="default"
        aria-label={t('logout')}
        data-testid="logout"
        onClick={() => {
          void client()
            .logout()
            .catch(() => undefined);
          session.leave(); // also where the service is unreachable
        }}
      >
        <IconLogout size={16} />
      </ActionIcon>
    </Group>
  );
}

export function Missing() {
  return <Nowhere text="missing" />;
}

/** The screen does not exist, or the user has no permission for it. */
export function Nowhere({ text }: { text: string }) {
  const { t } = useTranslation();
  return (
    <Stack align="start" data-testid={text}>
      <Title order={1} size="h3">
        {t(text)}
      </Title>
      <Anchor component={Link} to={'/' as string}>
        {t('home.title')}
      </Anchor>
    </Stack>
  );
}
