/** The keys of every screen: g and a letter opens a screen, ? shows all keys. */
import { Kbd, Modal, Table } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { useEffect, useEffectEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { isShortcut } from '../../kit/keys';
import { offeredScreens } from '../screen';
import { useMay } from '../session';
import type { TextKey } from '../../text/key';

/** The letter after g, and the screen that it opens. */
const screens: Record<string, string> = { h: '/', u: '/users', k: '/kyc', w: '/withdrawals', a: '/approvals' };
const pauseMs = 1500;

const ofLists: [keys: string, title: TextKey][] = [
  ['j  k', 'palette.keys.move'],
  ['Enter', 'palette.keys.open'],
  ['x', 'palette.keys.select'],
  ['/', 'palette.keys.filter'],
];

export function Shortcuts() {
  const { t } = useTranslation();
  const may = useMay();
  const navigate = useNavigate();
  const [help, setHelp] = useState(false);
  const [go, setGo] = useState(0); // when g was pressed
  const offered = Object.entries(screens).flatMap(([key, path]) =>
    offeredScreens(may)
      .filter((s) => s.path === path)
      .map((s) => ({ key, path, title: s.title })),
  );

  /** The letter after g does not reach the keys of the screen. */
  const second = useEffectEvent((event: KeyboardEvent) => {
    if (!go || event.key === 'Shift') return;
    setGo(0);
    const to = offered.find((s) => s.key === event.key);
    if (!to || event.timeStamp - go > pauseMs || !isShortcut(event)) return;
    event.preventDefault();
    event.stopPropagation();
    void navigate({ to: to.path });
  });
  /** The keys of the screen come first: they are on the document, this is on the window. */
  const first = useEffectEvent((event: KeyboardEvent) => {
    if ((event.key !== 'g' && event.key !== '?') || !isShortcut(event)) return;
    event.preventDefault();
    if (event.key === '?') setHelp(true);
    else setGo(event.timeStamp);
  });
  useEffect(() => {
    const capture = (event: KeyboardEvent) => second(event);
    const bubble = (event: KeyboardEvent) => first(event);
    window.addEventListener('keydown', capture, true);
    window.addEventListener('keydown', bubble);
    return () => {
      window.removeEventListener('keydown', capture, true);
      window.removeEventListener('keydown', bubble);
    };
  }, []);

  const rows: [string, string][] = [
    ['Ctrl K', t('palette.title')],
    ...offered.map(({ key, title }): [string, string] => [`g  ${key}`, t(title)]),
    ...ofLists.map(([key, title]): [string, string] => [key, t(title)]),
    ['?', t('palette.keys')],
  ];
  return (
    <Modal opened={help} onClose={() => setHelp(false)} title={t('palette.keys')} size="sm">
      <Table data-testid="keys">
        <Table.Tbody>
          {rows.map(([key, what]) => (
            <Table.Tr key={key}>
              <Table.Th scope="row" w={96}>
                <Kbd dir="ltr">{key}</Kbd>
              </Table.Th>
              <Table.Td>{what}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Modal>
  );
}
