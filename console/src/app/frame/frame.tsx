/** The frame of every screen: menu by permissions, palette, user. */
import {
  ActionIcon,
  Anchor,
  AppShell,
  Burger,
  Button,
  Group,
  Kbd,
  Loader,
  ScrollArea,
  Stack,
  Text,
  Title,
} from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { Notifications } from '@mantine/notifications';
import { spotlight } from '@mantine/spotlight';
import { IconSearch } from '@tabler/icons-react';
import { Link, Outlet, useRouterState } from '@tanstack/react-router';
import { Suspense, useEffect } from 'react';
import { useTranslation } from 'react-i18next';
import { Chip } from './chip';
import { Again } from '../deferred';
import { Logo } from './logo';
import { Entries, FamilyTabs } from './menu';
import { Palette } from '../search/palette';
import { usePermissions } from './permissions';
import { useSession } from '../session';
import type { TextKey } from '../../text/key';

export default function Frame() {
  const { t } = useTranslation();
  const { may } = useSession();
  const permissions = usePermissions();
  const [opened, { close, toggle }] = useDisclosure();
  const path = useRouterState({ select: (state) => state.location.pathname });
  useEffect(() => close(), [path, close]);
  return (
    <AppShell
      header={{ height: 52 }}
      navbar={{ width: 224, breakpoint: 'sm', collapsed: { mobile: !opened } }}
      padding="md"
    >
      <AppShell.Header px="md">
        <Group h="100%" justify="space-between" wrap="nowrap">
          <Group gap="sm" wrap="nowrap">
            <Burger opened={opened} onClick={toggle} hiddenFrom="sm" size="sm" aria-label={t('menu')} />
            <Link to={'/'} className="brand" aria-label={`Castellan: ${t('home.title')}`}>
              <Logo />
              <Text component="span" fw={600} visibleFrom="xs">
                Castellan
              </Text>
            </Link>
          </Group>
          <Group gap="sm" wrap="nowrap">
            <Search />
            <Chip />
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar>
        <ScrollArea component="nav" aria-label={t('menu')} p="xs">
          {may && <Entries />}
        </ScrollArea>
      </AppShell.Navbar>
      <AppShell.Main>
        {may ? (
          <>
            <FamilyTabs />
            <Suspense fallback={<Loader />}>
              <Outlet />
            </Suspense>
          </>
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

function Search() {
  const { t } = useTranslation();
  return (
    <>
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
    </>
  );
}

export function Missing() {
  return <Nowhere text="missing" />;
}

/** The screen does not exist, or the user has no permission for it. */
export function Nowhere({ text }: { text: TextKey }) {
  const { t } = useTranslation();
  return (
    <Stack align="start" data-testid={text}>
      <Title order={1} size="h3">
        {t(text)}
      </Title>
      <Anchor component={Link} to={'/'}>
        {t('home.title')}
      </Anchor>
    </Stack>
  );
}
