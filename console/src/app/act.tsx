/**
 * A write of a screen: one idempotency key for one intention, a challenge where the service requires one, and the
 * refusal shown beside the form. Every screen writes through this module.
 */
import { Anchor, Modal } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useEffect, useRef, useState, type ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import type { paths } from '../api';
import type { Flow, Outcome } from '../../../web/static/castellan-client.js';
import { Refusal, start, type Body, type Writes } from './api';
import { Challenge } from './login/challenge';
import { useCode } from './login/code';
import { session, useMay } from './session';
import { inbox } from './waiting';
import { useRead } from '../kit/read';
import { dateFormat } from '../kit/show';
import type { TextKey } from '../text/key';

const approvals = '/admin/approvals';
const approval = '/admin/approvals/{id}';

type Method = 'post' | 'patch' | 'delete';

/** The answer to a call that a second person must approve (D-EXT-08). */
interface Sealed {
  data?: { approvalId?: string; expiresAt?: string };
}

/** A business refusal with the status 200 (D-TX-05). */
interface Refused {
  code?: number | null;
  message?: string;
}

export interface Act<B> {
  /**
   * Runs the write, with the values of {places} in the path. Resolves with the data of the answer, or with undefined
   * after a refusal, which is then in `problem`.
   */
  run: (body: B, places?: Record<string, string>) => Promise<unknown>;
  busy: boolean;
  problem?: Refusal;
  clear: () => void;
  /** Render it on the screen: it shows the challenge. */
  view: ReactNode;
}

/**
 * touches are the paths whose lists are read again afterwards. done is the text of the notification, and title names
 * the write above it.
 */
export function useAct<M extends Method, P extends Writes<M> & keyof paths>(
  method: M,
  path: P,
  touches: string[] = [],
  done: TextKey = 'done',
  title?: TextKey,
): Act<Body<P, M>> {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const may = useMay();
  const navigate = useNavigate();
  const code = useCode();
  const [flow, setFlow] = useState<Flow>();
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Refusal>();
  const asked = `${method.toUpperCase()} ${String(path)}`;
  // One key for one intention: method, path and body. Another row or a changed form gets another key.
  const keys = useRef(new Map<string, string>());
  // A double click sends once.
  const under = useRef(new Map<string, Promise<unknown>>());

  function run(body: Body<P, M>, places: Record<string, string> = {}) {
    const intention = JSON.stringify([places, body]);
    const going = under.current.get(intention) ?? once(body, places, intention);
    under.current.set(intention, going);
    return going.finally(() => under.current.delete(intention));
  }

  async function once(body: Body<P, M>, places: Record<string, string>, intention: string) {
    setBusy(true);
    setProblem(undefined);
    const key = keys.current.get(intention) ?? crypto.randomUUID();
    keys.current.set(intention, key);
    try {
      const begun = await code.with((otp) => start(method, path, body, { key, places, otp }));
      if (begun.challenge) setFlow(begun);
      const outcome: Outcome = await begun.done;
      if (!outcome.success) throw Refusal.outcome(outcome, asked);
      const refused = outcome.data as Refused | undefined;
      if (refused?.code === 1) throw new Refusal(200, '1', refused.message ?? '');
      keys.current.delete(intention); // the same write again is another intention
      const sealed = (outcome.data as Sealed | undefined)?.data;
      const waits = sealed?.approvalId;
      const stale = [inbox, ...(waits ? [approvals] : touches)];
      await Promise.all(stale.map((touched) => queries.invalidateQueries({ queryKey: [touched] })));
      notifications.show(
        waits
          ? {
              message: (
                <Waits
                  id={waits}
                  until={sealed.expiresAt ?? ''}
                  touches={touches}
                  watch={may(`GET ${approval}`)}
                  open={may(`GET ${approvals}`) ? () => void navigate({ to: '/approvals' }) : undefined}
                />
              ),
              id: 'waits', // once for a hundred rows
              color: 'yellow',
              autoClose: may(`GET ${approval}`) ? false : 15_000, // otherwise it follows the request
            }
          : { id: `done ${String(path)}`, title: title && t(title), message: t(done), color: 'green' },
      ); // once for a hundred rows
      return outcome.data ?? {};
    } catch (error) {
      const refusal = Refusal.of(error, asked);
      // Without an answer the outcome is unknown. The same key makes a retry safe.
      if (refusal.status !== 0 && refusal.status < 500) keys.current.delete(intention);
      const over = refusal.status === 401 && !session.now().token; // the login above the screen shows it
      if (refusal.code !== 'ABANDONED' && !over) setProblem(refusal);
      return undefined;
    } finally {
      setFlow(undefined);
      setBusy(false);
    }
  }

  const view = (
    <>
      {code.view}
      <Modal opened={!!flow} onClose={() => flow?.close()} title={t('challenge.title')} centered>
        {flow && <Challenge flow={flow} asked={asked} onCancel={() => flow.close()} />}
      </Modal>
    </>
  );
  return { run, busy, problem, clear: () => setProblem(undefined), view };
}

/** Writes for each row, in order, until one is refused. Resolves to whether all were accepted. */
export async function each<T>(rows: T[], write: (row: T) => Promise<unknown>): Promise<boolean> {
  for (const row of rows) if ((await write(row)) === undefined) return false;
  return true;
}

/** Keys of the texts about a decided request. */
export const decisions: Record<string, TextKey> = {
  APPROVED: 'approval.approved',
  REFUSED: 'approval.refused',
  EXPIRED: 'approval.expired',
  FAILED: 'approval.failed',
};

/** A request for a second person, read again every three seconds until it is decided. */
export function useApproval(id: string, enabled: boolean) {
  const every = (last?: { status: string }) => (last && last.status !== 'PENDING' ? false : 3000);
  return useRead(approval, undefined, { places: { id }, enabled, every }).data;
}

/** A second person must approve the write before the instant that the service named. */
export function WaitsUntil({ at }: { at: string }) {
  const { t, i18n } = useTranslation();
  return t('approval.waits', { at: dateFormat(i18n.language, 'medium').format(new Date(at)) });
}

/**
 * The write waits for approval. Users with the permission get a link to the pending requests. Notifications are
 * outside the routes, so it is not a router Link.
 */
function Waits(props: { id: string; until: string; touches: string[]; watch: boolean; open?: () => void }) {
  const { until, touches, open } = props;
  const { t } = useTranslation();
  const queries = useQueryClient();
  const request = useApproval(props.id, props.watch);
  const status = request?.status ?? 'PENDING';
  useEffect(() => {
    if (status === 'PENDING') return;
    for (const stale of [inbox, approvals, ...touches]) void queries.invalidateQueries({ queryKey: [stale] });
    notifications.hide('waits');
    notifications.show({
      id: `decided ${props.id}`,
      message: t(request?.fetchUntil ? 'approval.fetch' : (decisions[status] ?? 'approval.failed')),
      color: status === 'APPROVED' ? 'green' : 'red',
      autoClose: 15_000,
    });
    // eslint-disable-next-line react-hooks/exhaustive-deps -- the decision is shown once
  }, [status]);
  return (
    <>
      <WaitsUntil at={until} />{' '}
      {open && (
        <Anchor component="button" type="button" size="sm" onClick={open} data-testid="see-approvals">
          {t('approval.open')}
        </Anchor>
      )}
    </>
  );
}
