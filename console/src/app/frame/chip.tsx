/** The user of the session in the frame: name and role, time left, language, theme, logout. */
import { Avatar, Badge, Group, Menu, Text, UnstyledButton, useMantineColorScheme } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { IconChevronDown, IconLogout, IconMoon, IconShieldLock } from '@tabler/icons-react';
import { Link } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { client } from '../api';
import { languages, speak, type Language } from '../i18n';
import { mode } from '../page';
import { Problem } from '../problem';
import { session, useMay, useSession } from '../session';
import { initials } from '../../kit/person';
import { useRead } from '../../kit/read';

export function Chip() {
  const { t, i18n } = useTranslation();
  const may = useMay();
  const { toggleColorScheme } = useMantineColorScheme();
  const me = useRead('/auth/me').data?.data;
  const name = me?.fullName || me?.email || me?.phoneNumber || '';
  const role = me?.roles.join(', ') ?? '';
  return (
    <Group gap="xs" wrap="nowrap">
      {mode === 'development' && (
        <Badge variant="light" color="yellow" visibleFrom="md" data-testid="mode">
          {t('chip.development')}
        </Badge>
      )}
      <Menu width={260} position="bottom-end">
        <Menu.Target>
          <UnstyledButton className="chip" title={t('chip.title', { name })} data-testid="chip">
            <Avatar size={28} radius="xl" color="castle" variant="filled" aria-hidden>
              {initials(name)}
            </Avatar>
            <span className="named">
              <bdi className="name">{name}</bdi>
              {role && <bdi className="role">{role}</bdi>}
            </span>
            <IconChevronDown size={14} aria-hidden />
          </UnstyledButton>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Label>
            <Text size="sm" fw={500} c="var(--mantine-color-text)">
              <bdi>{name}</bdi>
            </Text>
            {role && <bdi>{role}</bdi>}
            <Left />
          </Menu.Label>
          {may('GET /auth/sessions') && (
            <Menu.Item component={Link} to={'/me'} leftSection={<IconShieldLock size={16} />}>
              {t('own.security')}
            </Menu.Item>
          )}
          <Menu.Divider />
          <Menu.Label>{t('language')}</Menu.Label>
          {Object.entries(languages).map(([code, language]) => (
            <Menu.Item
              key={code}
              lang={code}
              role="menuitemradio"
              aria-checked={i18n.language === code}
              disabled={i18n.language === code}
              data-testid={`language-${code}`}
              onClick={() => {
                speak(code as Language).catch((error: unknown) =>
                  notifications.show({ color: 'red', message: <Problem of={error} /> }),
                );
              }}
            >
              {language}
            </Menu.Item>
          ))}
          <Menu.Divider />
          <Menu.Item leftSection={<IconMoon size={16} />} onClick={toggleColorScheme} data-testid="theme">
            {t('theme')}
          </Menu.Item>
          <Menu.Item
            leftSection={<IconLogout size={16} />}
            data-testid="logout"
            onClick={() => {
              void client()
                .logout()
                .catch(() => undefined);
              session.leave(); // also where the service is unreachable
            }}
          >
            {t('logout')}
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
    </Group>
  );
}

/** The minutes until the session ends. */
function Left() {
  const { t } = useTranslation();
  const { ends } = useSession();
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 15_000);
    return () => clearInterval(timer);
  }, []);
  if (!ends) return null;
  const minutes = Math.max(0, Math.ceil((ends - now) / 60_000));
  return (
    <Text size="xs" c="dimmed" data-testid="left" data-minutes={minutes}>
      {minutes > 120 ? t('chip.leftHours', { count: Math.floor(minutes / 60) }) : t('chip.left', { count: minutes })}
    </Text>
  );
}
