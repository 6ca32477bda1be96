/** The customers whose pages this tab opened last. They are kept in memory, for one operator. */
import { useSyncExternalStore } from 'react';
import type { Schemas } from '../api';

type User = Schemas['UserListItem'];

const most = 5;
const none: User[] = [];
let operator = '';
let kept = none;
const listeners = new Set<() => void>();

/** Puts a customer first in the list of an operator. The list of another operator is forgotten. */
export function remember(by: string, user: User): void {
  const before = by === operator ? kept.filter((u) => u.userId !== user.userId) : none;
  operator = by;
  kept = [user, ...before].slice(0, most);
  for (const tell of listeners) tell();
}

/** The recent customers of an operator, the latest first. */
export function useRecent(by: string): User[] {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => (by === operator ? kept : none),
  );
}
