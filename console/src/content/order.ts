/** The order of things that a person moves: by drag, by buttons, by keys. Nothing is sent before it is saved. */
import { useState } from 'react';

export interface Order<T> {
  rows: T[];
  changed: boolean;
  /** Moves the row at a place by so many places. */
  move: (from: number, to: number) => void;
  reset: () => void;
}

export function useOrder<T extends { id: number }>(stored: T[]): Order<T> {
  const [ids, setIds] = useState<number[]>();
  const known = new Set(stored.map((row) => row.id));
  // What was added or deleted meanwhile is in the order that the service has.
  const kept = ids?.filter((id) => known.has(id)) ?? [];
  const rows =
    ids === undefined
      ? stored
      : [...kept.map((id) => stored.find((row) => row.id === id)!), ...stored.filter((row) => !kept.includes(row.id))];
  return {
    rows,
    changed: rows.some((row, n) => row !== stored[n]),
    move(from, to) {
      const next = rows.map((row) => row.id);
      const place = Math.min(Math.max(to, 0), next.length - 1);
      next.splice(place, 0, ...next.splice(from, 1));
      setIds(next);
    },
    reset: () => setIds(undefined),
  };
}
