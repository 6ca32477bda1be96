/**
 * The unsent input of a form. It is kept in the tab (sessionStorage) while the user types, so that it survives a closed
 * form, a left screen and a reload. It is removed when the write succeeded, when the user discards it, at logout, when
 * another user logs in, and after 12 hours. Secrets and files are never kept.
 */
import { useEffect, useRef, useState } from 'react';
import { session } from '../app/session';

const prefix = 'castellan.draft.';
const WRITE_MS = 250; // the delay of a write behind the typed text
const MAX_AGE_MS = 12 * 3_600_000;
const MAX_LENGTH = 200_000; // characters of one draft

type Values = Record<string, unknown>;

/** The drafts that are not yet in the storage; '' removes one. */
const pending = new Map<string, string>();
let timer: ReturnType<typeof setTimeout> | undefined;

const own = (userId: string) => `${prefix}${userId}.`;

function flush() {
  clearTimeout(timer);
  timer = undefined;
  for (const [key, text] of pending) {
    try {
      if (text) sessionStorage.setItem(key, text);
      else sessionStorage.removeItem(key);
    } catch {
      sessionStorage.removeItem(key); // full: an outdated draft is worse than none
    }
  }
  pending.clear();
}

function keep(key: string, changes: string) {
  const { userId } = session.now();
  if (!userId || !key.startsWith(own(userId))) return; // logged out meanwhile
  pending.set(key, changes && JSON.stringify({ at: Date.now(), changes }));
  timer ??= setTimeout(flush, WRITE_MS);
}

function forget(key: string) {
  pending.delete(key);
  sessionStorage.removeItem(key);
}

/** Removes a draft of the user of the session: its write succeeded after its form was left. */
export function forgetDraft(form: string) {
  forget(own(session.now().userId) + form);
}

/** Adds values to the draft of a form that another screen opens. */
export function beginDraft(form: string, values: Values) {
  const key = own(session.now().userId) + form;
  keep(key, JSON.stringify({ ...recall(key), ...values }));
}

function recall(key: string): Values {
  try {
    const stored = JSON.parse(pending.get(key) ?? sessionStorage.getItem(key) ?? '') as { at: number; changes: string };
    if (Date.now() - stored.at > MAX_AGE_MS) return {};
    const found = JSON.parse(stored.changes) as Values;
    return Object.fromEntries(Object.entries(found).map(([name, value]) => [name, value ?? undefined]));
  } catch {
    return {};
  }
}

/** Removes all drafts, except those of a user. */
function removeOthers(userId: string) {
  const others = (key: string) => key.startsWith(prefix) && !(userId && key.startsWith(own(userId)));
  for (const key of [...pending.keys(), ...Object.keys(sessionStorage)]) if (others(key)) forget(key);
}

let owner = session.now().userId;
if (owner) removeOthers(owner); // after a reload, another user may have logged in
session.subscribe(() => {
  const { userId } = session.now();
  if (userId === owner) return;
  owner = userId;
  removeOthers(userId);
});
addEventListener('pagehide', flush);

/** The text of a value. A field that was emptied again is like one that never had a value. */
function said(value: unknown): string {
  const empty = value === undefined || value === null || value === '' || value === false;
  return empty || (Array.isArray(value) && value.length === 0) ? '' : JSON.stringify(value);
}

export interface Draft<T> {
  value: T;
  set: (some: Partial<T>) => void;
  /** The input differs from the initial values. */
  dirty: boolean;
  /** The input is kept: it is short enough, and not only secrets and files. */
  kept: boolean;
  /** The form began with a draft. */
  restored: boolean;
  /** Returns to the initial values. */
  discard: () => void;
  /** The write succeeded. */
  done: () => void;
  /** Increases when the fields must be built again. */
  round: number;
}

/**
 * The values of a form, with its draft. form names the form and the record that it edits. initial may arrive later: a
 * field has its initial value until the user changes it. never selects the fields that are not kept.
 */
export function useDraft<T extends object>(
  form: string,
  initial: T,
  never: (name: string) => boolean = () => false,
): Draft<T> {
  const [key] = useState(() => own(session.now().userId) + form);
  const [changes, setChanges] = useState(() => recall(key));
  const [restored, setRestored] = useState(() => Object.keys(changes).length > 0);
  const [round, setRound] = useState(0);
  const over = useRef(false);
  const differing = Object.entries(changes).filter(([name, v]) => said(v) !== said((initial as Values)[name]));
  const storable = differing.filter(([name]) => !never(name)).map(([name, v]) => [name, v ?? null] as const);
  const text = storable.length > 0 ? JSON.stringify(Object.fromEntries(storable)) : '';
  const kept = text !== '' && text.length <= MAX_LENGTH;
  useEffect(() => {
    if (!over.current) keep(key, kept ? text : '');
  }, [key, kept, text]);
  return {
    value: { ...initial, ...changes },
    set: (some) => setChanges((old) => ({ ...old, ...some })),
    dirty: differing.length > 0,
    kept,
    restored,
    discard: () => {
      forget(key);
      setChanges({});
      setRestored(false);
      setRound((n) => n + 1);
    },
    done: () => {
      over.current = true;
      forget(key);
    },
    round,
  };
}
