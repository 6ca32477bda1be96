/**
 * The menu. Screens of one subject share an entry, with tabs above their content. Groups can be closed. The entry of
 * the open screen is always in sight.
 */
import { Badge, NavLink, UnstyledButton } from '@mantine/core';
import { IconChevronDown } from '@tabler/icons-react';
import { Link, useRouterState } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { allScreens, offeredScreens, type Screen } from '../screen';
import { useMay } from '../session';
import { useWaiting, type Waiting } from '../waiting';

const groups: Screen['group'][] = ['work', 'people', 'money', 'content', 'security', 'system', 'own'];

/** Otherwise the link of /me would also be marked at /me/account. */
const exactly = { exact: true, includeSearch: false };

/** A menu entry: the screens of one subject that the user may open. The first one opens with it. */
interface Family {
  /** The screen that names the entry, also if the user may not open it. */
  name: Screen;
  members: Screen[];
}

function families(may: (endpoint: string) => boolean): Family[] {
  const all = allScreens();
  const offered = offeredScreens(may);
  const names = new Set(offered.map((s) => all.find((one) => one.path === s.under) ?? s));
  return [...names].map((name) => ({
    name,
    members: [...offered.filter((s) => s === name), ...offered.filter((s) => s.under === name.path)],
  }));
}

/** The address of the screen that opens, or of the shown one, without the base path. */
const useHere = (shown: boolean) =>
  useRouterState({
    select: (state) =>
      ((shown && state.resolvedLocation) || state.location).pathname.replace(/^.*?\/console/, '') || '/',
  });

/** The screen itself, or the screen that linked to it; never two: /me is not open when /me/account is. */
function openIn(screens: Screen[], here: string): Screen | undefined {
  return screens
    .filter((s) => s.path === here || (s.path !== '/' && here.startsWith(`${s.path}/`)))
    .sort((a, b) => b.path.length - a.path.length)[0];
}

/**
 * The menu entries of the user, and the screen that opens, or the shown one while another one opens; undefined if it is
 * not in the menu.
 */
function useMenu(shown = false): { all: Family[]; here: string; screen: Screen | undefined } {
  const may = useMay();
  const here = useHere(shown);
  const all = families(may);
  const members = all.flatMap((f) => f.members);
  return { all, here, screen: openIn(members, here) };
}

export function Entries() {
  const { all, screen } = useMenu();
  const { waiting } = useWaiting();
  return groups.map((group) => {
    const shown = all.filter((f) => f.name.group === group);
    return shown.length > 0 && <Part key={group} group={group} families={shown} screen={screen} waiting={waiting} />;
  });
}

const remembered = 'castellan.menu';

/** The groups that the user has closed. */
const closedGroups = (): string[] => (localStorage.getItem(remembered) ?? '').split(',');

function Part({
  group,
  families,
  screen,
  waiting,
}: {
  group: Screen['group'];
  families: Family[];
  screen?: Screen;
  waiting: Waiting[];
}) {
  const { t } = useTranslation();
  const [closed, setClosed] = useState(() => closedGroups().includes(group));
  const inside = !!screen && families.some((f) => f.members.includes(screen));
  const hidden = closed && !inside;
  const toggle = () => {
    const others = closedGroups().filter((name) => name && name !== group);
    localStorage.setItem(remembered, (closed ? others : [...others, group]).join(','));
    setClosed(!closed);
  };
  return (
    <section className="part">
      <h2>
        <UnstyledButton onClick={toggle} aria-expanded={!hidden} data-testid={`group-${group}`}>
          {t(`group.${group}`)}
          <IconChevronDown size={12} aria-hidden />
        </UnstyledButton>
      </h2>
      {!hidden && families.map((f) => <Entry key={f.name.path} of={f} screen={screen} waiting={waiting} />)}
    </section>
  );
}

function Entry({ of: { name, members }, screen, waiting }: { of: Family; screen?: Screen; waiting: Waiting[] }) {
  const { t } = useTranslation();
  const head = members[0] ?? name;
  const active = !!screen && members.includes(screen);
  const link = useRef<HTMLAnchorElement>(null);
  useEffect(() => {
    if (active) link.current?.scrollIntoView({ block: 'nearest' });
  }, [active]);
  const Icon = name.icon;
  return (
    <NavLink
      component={Link}
      ref={link}
      to={head.path}
      activeOptions={exactly}
      label={t(members.length > 1 ? (name.family ?? name.title) : head.title)}
      leftSection={Icon && <Icon size={17} stroke={1.6} />}
      rightSection={<Waits of={waiting.filter((w) => !w.part && members.some((s) => s.path === w.to))} />}
      active={active}
      aria-current={active ? (screen === head ? 'page' : 'true') : undefined}
      data-testid={`nav-${head.path}`}
      data-screens={members.map((s) => s.path).join(' ')}
    />
  );
}

/** The number of pending entries behind a menu entry. */
function Waits({ of: waiting }: { of: Waiting[] }) {
  const { t } = useTranslation();
  const n = waiting.reduce((sum, w) => sum + w.count, 0);
  if (n === 0) return null;
  return (
    <Badge size="sm" variant="light" circle={n < 10} aria-label={t('menu.waiting', { count: n })} data-testid="pending">
      {`${n}${waiting.some((w) => w.more) ? '+' : ''}`}
    </Badge>
  );
}

/** The tabs above the screens of one menu entry. */
export function FamilyTabs() {
  const { t } = useTranslation();
  const { all, here, screen } = useMenu(true); // the tabs change together with the content below them
  const { waiting } = useWaiting();
  const family = screen && all.find((f) => f.members.includes(screen));
  const shown = useRef<HTMLElement>(null);
  useEffect(() => {
    shown.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }, [screen]);
  if (!screen || !family || family.members.length < 2 || screen.path !== here) return null;
  return (
    <nav className="family" ref={shown} aria-label={t(family.name.family ?? family.name.title)}>
      {family.members.map((s) => (
        <Link
          key={s.path}
          to={s.path}
          activeOptions={exactly}
          aria-current={s === screen ? 'page' : undefined}
          data-testid={`go-${s.path}`}
        >
          {t(s.title)}
          <Waits of={waiting.filter((w) => w.to === s.path)} />
        </Link>
      ))}
    </nav>
  );
}
