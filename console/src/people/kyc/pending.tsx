/**
 * Decisions that can still be undone. A decision is sent after ten seconds. Until then it exists only here, and a bar
 * on every screen counts down. A refusal of the service brings the case back, with the problem. Nothing outlives the
 * session of the user who decided.
 */
import { Button, Group, Progress, Stack, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useEffect, useRef, useState, useSyncExternalStore } from 'react';
import { useTranslation } from 'react-i18next';
import { useAct } from '../../app/act';
import type { Body, Refusal } from '../../app/api';
import { openScreen } from '../../app/screen';
import { session, useSession } from '../../app/session';
import { forgetDraft } from '../../kit/draft';
import { reasonOf } from './decide';

export const undoMs = 10_000;
const tickMs = 500; // many may wait, and each tick renders

export interface Decision {
  userId: string;
  name: string;
  body: Body<'/user/update-kyc', 'post'>;
  due: number;
  /** The user who decided. */
  by: string;
}

interface State {
  waiting: readonly Decision[];
  /** Sent and accepted; the lists may not show it yet. */
  settled: ReadonlySet<string>;
  failed: ReadonlyMap<string, Refusal | undefined>;
}

const nothing: State = { waiting: [], settled: new Set(), failed: new Map() };
let state = nothing;
const listeners = new Set<() => void>();
const bar = 'kyc-waiting';

function set(next: Partial<State>) {
  const open = state.waiting.length > 0;
  state = { ...state, ...next };
  if (state.waiting.length > 0 && !open) {
    addEventListener('beforeunload', asks);
    const message = <Bar />;
    notifications.show({ id: bar, position: 'bottom-center', autoClose: false, withCloseButton: false, message });
  }
  if (state.waiting.length === 0 && open) {
    removeEventListener('beforeunload', asks);
    notifications.hide(bar);
  }
  for (const listener of listeners) listener();
}

/** Makes the browser ask before the page closes, because pending decisions would not be sent. */
function asks(event: BeforeUnloadEvent) {
  event.preventDefault();
}

export function usePending(): State {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => state,
  );
}

export function decide(decision: Omit<Decision, 'due' | 'by'>) {
  const failed = new Map(state.failed);
  failed.delete(decision.userId);
  const one = { ...decision, due: Date.now() + undoMs, by: session.now().userId };
  set({ waiting: [...state.waiting.filter((d) => d.userId !== decision.userId), one], failed });
}

/** Undoes the last decision, or the one on an account. Returns the account. */
export function undo(userId = state.waiting.at(-1)?.userId): string | undefined {
  if (!state.waiting.some((d) => d.userId === userId)) return undefined;
  set({ waiting: state.waiting.filter((d) => d.userId !== userId) });
  return userId;
}

function over(decision: Decision, taken: boolean, problem?: Refusal) {
  const failed = new Map(state.failed);
  const settled = new Set(state.settled);
  if (taken) settled.add(decision.userId);
  else failed.set(decision.userId, problem);
  set({ waiting: state.waiting.filter((d) => d !== decision), settled, failed });
}

/** Opens a case. The bar is outside the routes. */
const open = (userId: string) => openScreen(`/kyc/${userId}`);

function Bar() {
  const { waiting } = usePending();
  const { userId } = useSession();
  useEffect(() => {
    if (waiting.some((d) => d.by !== userId)) set(nothing); // another user has logged in
  }, [waiting, userId]);
  return (
    <Stack gap="xs" data-testid="undo-bar">
      {waiting.map((d) => (
        <Waiting key={`${d.userId} ${d.due}`} decision={d} />
      ))}
    </Stack>
  );
}

const touches = ['/user/get-documents', '/admin/kyc-case', '/admin/list-users'];

function Waiting({ decision }: { decision: Decision }) {
  const { t } = useTranslation();
  const act = useAct('post', '/user/update-kyc', touches, 'kyc.sent');
  const [left, setLeft] = useState(() => decision.due - Date.now());
  const [refused, setRefused] = useState(false);
  const sent = useRef(false);
  useEffect(() => {
    const clock = setInterval(() => setLeft(decision.due - Date.now()), tickMs);
    return () => clearInterval(clock);
  }, [decision]);
  useEffect(() => {
    if (left > 0 || sent.current || decision.by !== session.now().userId) return;
    sent.current = true;
    void act.run(decision.body).then((answer) => {
      if (answer === undefined) setRefused(true);
      else {
        forgetDraft(reasonOf(decision.userId));
        over(decision, true);
      }
    });
  }, [left, act, decision]);
  useEffect(() => {
    if (!refused) return;
    over(decision, false, act.problem);
    open(decision.userId);
  }, [refused, act.problem, decision]);
  const seconds = Math.max(0, Math.ceil(left / 1000));
  return (
    <div>
      <Group justify="space-between" wrap="nowrap" gap="xs">
        <Text size="sm">
          <bdi>{decision.name}</bdi>: {t(`kyc.verdict.${decision.body.kycConfirm}`)}
        </Text>
        {left > 0 && (
          <Button
            size="compact-sm"
            variant="light"
            data-testid="undo"
            onClick={() => {
              if (undo(decision.userId)) open(decision.userId);
            }}
          >
            {t('kyc.undo', { seconds })}
          </Button>
        )}
      </Group>
      <Progress
        size="xs"
        value={(Math.max(0, left) / undoMs) * 100}
        transitionDuration={tickMs}
        aria-label={t('kyc.undo.left')}
      />
      {act.view}
    </div>
  );
}
