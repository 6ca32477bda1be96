/**
 * Drawers in the address: open=ID is the drawer of a row, form=NAME that of a form. So Back closes a drawer and not its
 * list, a reload opens it again, and it has a link. A form with unsent input asks before it closes.
 */
import { Anchor, Button, Drawer, Group, Modal, Stack, Text } from '@mantine/core';
import { useNavigate, useRouter } from '@tanstack/react-router';
import {
  createContext,
  useCallback,
  useContext,
  useEffect,
  useEffectEvent,
  useRef,
  useState,
  type ReactNode,
} from 'react';
import { useTranslation } from 'react-i18next';
import { useTexts, type Search } from '../app/address';
import type { Draft } from './draft';
import type { TextKey } from '../text/key';

/** The names of drawers in the search of an address. They are no filters. */
export const drawers = ['open', 'form'] as const;
type Kind = (typeof drawers)[number];

/** Writes a drawer to the address, and removes it. */
function useEntry(kind: Kind) {
  const router = useRouter();
  const navigate = useNavigate();
  const entered = useRef<number>(undefined); // the position in the history that the drawer added
  const history = router.history;
  const position = () => history.location.state.__TSR_index;
  const here = () => router.latestLocation.search[kind];
  const write = (value: string | undefined) => (old: Search) => ({ ...old, [kind]: value });
  return {
    enter(value: string) {
      if (here() === value) return;
      void navigate({ to: '.', search: write(value) });
      entered.current = position();
    },
    /** back: the user closes the drawer, and no other navigation follows. Returns false if it is not in the address. */
    leave(value: string, back = false): boolean {
      if (here() !== value) return false;
      if (back && entered.current === position()) history.back();
      else void navigate({ to: '.', replace: true, search: write(undefined) });
      entered.current = undefined;
      return true;
    },
  };
}

/** A drawer whose state is only its address. done closes it after its write. */
export function useAddressed(kind: Kind, name: string) {
  const entry = useEntry(kind);
  return {
    opened: useTexts()[kind] === name,
    open: () => entry.enter(name),
    close: () => void entry.leave(name, true),
    done: () => void entry.leave(name),
  };
}

/**
 * A drawer that its screen opens and closes. Its name goes to the address while it is open; undefined is closed. The
 * returned function closes it for the user.
 */
export function useShown(kind: Kind, name: string | undefined, onClose: () => void): () => void {
  const entry = useEntry(kind);
  const asked = useTexts()[kind];
  const shown = useRef<string>(undefined);
  const follow = useEffectEvent(() => {
    if (name === shown.current) {
      if (name !== undefined && asked === undefined) onClose();
      return;
    }
    if (name !== undefined) entry.enter(name);
    else if (shown.current !== undefined) entry.leave(shown.current);
    shown.current = name;
  });
  useEffect(() => follow(), [name, asked]);
  return () => {
    if (name === undefined || !entry.leave(name, true)) onClose();
  };
}

const ids = new WeakMap<object, string>();

/** The id of a row that a list opened. */
export const idOf = (row: object | undefined) => row && ids.get(row);

/** Opens a row of a list. The row that the address names is opened once it is read. */
export function useOpening<T extends object>(rows: T[], id: (row: T) => string, open?: (row: T) => void) {
  const asked = useTexts().open;
  const last = useRef<string>(undefined);
  const show = (row: T) => {
    last.current = id(row);
    if (last.current) ids.set(row, last.current);
    open?.(row);
  };
  const found = asked === undefined ? undefined : rows.find((row) => id(row) === asked);
  const follow = useEffectEvent(() => {
    if (asked === undefined) last.current = undefined;
    else if (found && asked !== last.current) show(found);
  });
  const there = found !== undefined;
  useEffect(() => follow(), [asked, there]);
  return show;
}

type Unsent = Pick<Draft<unknown>, 'dirty' | 'kept' | 'discard'>;

const Closing = createContext<{ close: () => void; register: (form?: Unsent) => void }>({
  close: () => undefined,
  register: () => undefined,
});

/** Tells the drawer about the input of its form. Returns the function that closes it, for the button "Cancel". */
export function useClosing(form: Unsent): () => void {
  const { close, register } = useContext(Closing);
  useEffect(() => {
    register(form);
    return () => register(undefined);
  });
  return close;
}

/** The drawer of a form. */
export function FormDrawer({
  opened,
  onClose,
  title,
  size = 'lg',
  children,
}: {
  opened: boolean;
  onClose: () => void;
  title: TextKey;
  size?: string;
  children: ReactNode;
}) {
  const { t } = useTranslation();
  const form = useRef<Unsent>(undefined);
  const [asking, setAsking] = useState<Unsent>();
  const register = useCallback((next?: Unsent) => {
    form.current = next;
  }, []);
  const close = () => {
    if (form.current?.dirty) setAsking(form.current);
    else onClose();
  };
  const end = () => {
    setAsking(undefined);
    onClose();
  };
  return (
    <>
      <Drawer
        opened={opened}
        onClose={close}
        title={t(title)}
        position="right"
        size={size}
        closeOnEscape={!asking}
        closeOnClickOutside={!asking}
      >
        <Closing value={{ close, register }}>{children}</Closing>
      </Drawer>
      {opened && asking && (
        // Mounted late, and unmounted after the event: the Escape that opens or closes it must not reach the other.
        <Modal opened onClose={() => setTimeout(() => setAsking(undefined))} title={t('draft.title')} centered>
          <Stack data-testid="unsent">
            <Text size="sm">{t(asking.kept ? 'draft.lead' : 'draft.unkept')}</Text>
            <Group justify="flex-end" gap="xs">
              <Button
                variant="subtle"
                color="red"
                data-testid="draft-discard"
                onClick={() => {
                  asking.discard();
                  end();
                }}
              >
                {t('draft.discard')}
              </Button>
              {asking.kept && (
                <Button variant="default" onClick={end} data-testid="draft-keep">
                  {t('draft.keep')}
                </Button>
              )}
              <Button data-autofocus onClick={() => setAsking(undefined)} data-testid="draft-continue">
                {t('draft.continue')}
              </Button>
            </Group>
          </Stack>
        </Modal>
      )}
    </>
  );
}

/** Says that a form began with a draft. */
export function Restored({ of }: { of: Pick<Draft<unknown>, 'restored' | 'discard'> }) {
  const { t } = useTranslation();
  if (!of.restored) return null;
  return (
    <Text size="sm" c="dimmed" data-testid="restored">
      {t('draft.restored')} ·{' '}
      <Anchor component="button" type="button" size="sm" onClick={of.discard} data-testid="restored-discard">
        {t('draft.discard')}
      </Anchor>
    </Text>
  );
}
