/** Other users who have a case open. It is reported every ten seconds, and ended with the case (D-KYC-10). */
import { useEffect, useState } from 'react';
import { start, type Schemas } from '../../app/api';
import { useMay } from '../../app/session';

export type Person = Schemas['PresentPerson'];

export interface Presence {
  others: Person[];
  /** Another user opened it before the caller. */
  taken: boolean;
}

const path = '/admin/presence';
const beatMs = 10_000;
const alone: Presence = { others: [], taken: false };

/** No screen waits for it and failures are not shown, because the next report follows soon. */
async function say(subject: string, leaves: boolean): Promise<Person[]> {
  const flow = await start('post', path, { subject, leaves });
  const outcome = await flow.done;
  return (outcome.data as { data?: Schemas['Presence'] } | undefined)?.data?.others ?? [];
}

export function usePresence(subject: string): Presence {
  const may = useMay()(`POST ${path}`);
  const [state, setState] = useState<Presence>(alone);
  useEffect(() => {
    if (!may) return undefined;
    let live = true;
    let first = true;
    const beat = () =>
      say(subject, false).then(
        (others) => {
          if (!live) return;
          const met = first && others.length > 0;
          first = false;
          setState((old) => ({ others, taken: others.length > 0 && (old.taken || met) }));
        },
        () => undefined,
      );
    void beat();
    const clock = setInterval(() => void beat(), beatMs);
    return () => {
      live = false;
      clearInterval(clock);
      setState(alone);
      void say(subject, true).catch(() => undefined);
    };
  }, [subject, may]);
  return state;
}
