/**
 * The shortcuts of a screen. They are inactive while the user types, while a dialog is open, and with Ctrl, Alt or
 * Meta.
 */
import { useEffect, useEffectEvent } from 'react';

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
