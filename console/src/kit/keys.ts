/**
 * The shortcuts of a screen. They are inactive while the user types, while a dialog is open, and with Ctrl, Alt or
 * Meta.
 */
import { useEffect, useEffectEvent } from 'react';

type Keys = Record<string, () => void>;

const typing = 'input, textarea, select, [contenteditable="true"]';
const pressing = 'button, a[href], [role="button"]';

export function useKeys(keys: Keys): void {
  const press = useEffectEvent((event: KeyboardEvent) => {
    const target = event.target as Element | null;
    const run = keys[event.key];
    if (!run || event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.repeat && event.key === 'Enter') return;
    if (target?.closest(typing) && (target as HTMLInputElement).type !== 'checkbox') return;
    if (event.key === 'Enter' && target?.closest(pressing)) return; // Enter or Space activates the focused element
    if (document.querySelector('[role="dialog"]')) return;
    event.preventDefault();
    run();
  });
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => press(event);
    document.addEventListener('keydown', pressed);
    return () => document.removeEventListener('keydown', pressed);
  }, []);
}
