/** The order of rows that the user moves by drag, buttons or keys. Nothing is sent until it is saved. */
import { useState } from 'react';

export interface Order<T> {
  rows: T[];
  changed: boolean;
  /** Moves the row at a position by an offset. */
  move: (from: number, to: number) => void;
  /** Takes the order of the service. With ids, which were saved, a move after the save stays. */
  reset: (saved?: number[]) => void;
}

/** The rows in the order of ids. Rows that are not in ids follow in the order of the service. */
export function ordered<T extends { id: number }>(stored: T[], ids?: number[]): T[] {
  if (ids === undefined) return stored;
  const of = new Map(stored.map((row) => [row.id, row]));
  const kept = ids.flatMap((id) => of.get(id) ?? []);
  return [...kept, ...stored.filter((row) => !kept.includes(row))];
}

/** The ids with the one at from moved to a position, or to the nearest end. */
export function moved(ids: number[], from: number, to: number): number[] {
  const next = [...ids];
  const place = Math.min(Math.max(to, 0), next.length - 1);
  next.splice(place, 0, ...next.splice(from, 1));
  return next;
}

export function useOrder<T extends { id: number }>(stored: T[]): Order<T> {
  const [ids, setIds] = useState<number[]>();
  const rows = ordered(stored, ids);
  return {
    rows,
    changed: rows.some((row, n) => row !== stored[n]),
    move(from, to) {
      setIds(
        moved(
          rows.map((row) => row.id),
          from,
          to,
        ),
      );
    },
    reset: (saved) => setIds((now) => (saved && now && now.join() !== saved.join() ? now : undefined)),
  };
}
