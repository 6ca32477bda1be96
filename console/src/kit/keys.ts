/**
 * The shortcuts of a screen. They are inactive while the user types, while a dialog is open, and with Ctrl, Alt or
 * Meta.
 */
import { useEffect, useEffectEvent, useRef, useState, type FocusEvent, type KeyboardEvent as Pressed } from 'react';

type Keys = Record<string, () => void>;

const typing = 'input, textarea, select, [contenteditable="true"]';
const pressing = 'button, a[href], [role="button"]';

/** Reports whether a key is a shortcut and not input. */
export function isShortcut(event: KeyboardEvent): boolean {
  const target = event.target as Element | null;
  if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey) return false;
  if (target?.closest(typing) && (target as HTMLInputElement).type !== 'checkbox') return false;
  return !document.querySelector('[role="dialog"]');
}

export function useKeys(keys: Keys): void {
  const press = useEffectEvent((event: KeyboardEvent) => {
    const target = event.target as Element | null;
    const run = keys[event.key];
    if (!run || !isShortcut(event)) return;
    if (event.repeat && event.key === 'Enter') return;
    if (event.key === 'Enter' && target?.closest(pressing)) return; // Enter or Space activates the focused element
    event.preventDefault();
    run();
  });
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => press(event);
    document.addEventListener('keydown', pressed);
    return () => document.removeEventListener('keydown', pressed);
  }, []);
}

/**
 * j and k move the focus down and up, Enter opens, x selects, Shift selects the range since the last selection if its
 * row is still shown. The keys are inactive while a dialog is open.
 */
export function useCursorKeys(
  names: string[],
  open: (n: number) => void,
  /** Selects rows, or deselects them if the row `clicked` is selected. */
  choose: (some: string[], clicked: string) => void,
) {
  const [at, setAt] = useState(-1);
  const anchor = useRef('');
  const body = useRef<HTMLTableSectionElement>(null);
  const move = (by: number) => body.current?.rows[Math.min(Math.max(at + by, 0), names.length - 1)]?.focus();
  const chooseFrom = (from: number, n: number) => {
    const clicked = names[n];
    if (clicked === undefined) return;
    choose(names.slice(Math.min(from, n), Math.max(from, n) + 1), clicked);
    anchor.current = clicked;
  };
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    x: () => chooseFrom(at, at),
  });
  return {
    at,
    body,
    /** The props of a row. One row is reachable by Tab. */
    row: (n: number) => ({
      tabIndex: n === Math.max(at, 0) ? 0 : -1,
      onFocus: (event: FocusEvent) => event.target === event.currentTarget && setAt(n),
      onKeyDown: (event: Pressed) => {
        if (event.key !== 'Enter' || event.target !== event.currentTarget) return;
        event.preventDefault(); // the same key must not press a button of the dialog, which gets the focus
        open(n);
      },
    }),
    choose(event: { shiftKey: boolean; stopPropagation: () => void }, n: number) {
      event.stopPropagation();
      const from = event.shiftKey ? names.indexOf(anchor.current) : n;
      chooseFrom(from < 0 ? n : from, n);
    },
  };
}
