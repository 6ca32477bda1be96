/**
 * An image that requires the session. It is fetched with the token, held in memory only, and revoked with its element.
 * The watermark shows user and time, so that a photograph of the screen does too.
 */
import { Loader } from '@mantine/core';
import { useEffect, useState, type CSSProperties } from 'react';
import { Refusal } from '../app/api';
import { base } from '../app/page';
import { Problem } from '../app/problem';
import { fresh, proof } from '../app/login/renewal';
import { session, useSession } from '../app/session';

/** Fetches bytes with the session. The caller revokes the address when the image is no longer shown. */
export async function fetchPicture(address: string, signal?: AbortSignal): Promise<string> {
  await fresh();
  const dpop = await proof('GET', new URL(`${base}${address}`, location.href).href);
  const answer = await fetch(`${base}${address}`, {
    headers: { 'x-auth': session.now().token, ...(dpop ? { dpop } : {}) },
    cache: 'no-store',
    credentials: 'omit',
    signal,
  });
  if (!answer.ok) {
    throw await Refusal.answered(answer);
  }
  return URL.createObjectURL(await answer.blob());
}

/** address is a path of this service that answers bytes, or a data URL, which is shown as it is. */
export function Picture({ address, alt, style }: { address: string; alt: string; style?: CSSProperties }) {
  const [fetched, setFetched] = useState('');
  const [problem, setProblem] = useState<unknown>();
  const inline = address.startsWith('data:');
  useEffect(() => {
    if (inline) return undefined;
    const abort = new AbortController();
    let url = '';
    fetchPicture(address, abort.signal).then(
      (made) => {
        url = made;
        if (abort.signal.aborted) URL.revokeObjectURL(url);
        else setFetched(url);
      },
      (error: unknown) => {
        if (!abort.signal.aborted) setProblem(error);
      },
    );
    return () => {
      abort.abort();
      setFetched('');
      if (url) URL.revokeObjectURL(url);
    };
  }, [address, inline]);
  const shown = inline ? address : fetched;
  if (problem) return <Problem of={problem} />;
  if (!shown) return <Loader size="sm" />;
  return <img src={shown} alt={alt} draggable={false} style={{ maxWidth: '100%', ...style }} />;
}

/** The user and the time, across an image. */
export function Watermark() {
  const { userId } = useSession();
  const [at] = useState(() => new Date().toISOString().slice(0, 16).replace('T', ' '));
  return (
    <div className="watermark" aria-hidden>
      {Array.from({ length: 24 }, (_, n) => (
        <span key={n} data-mark={`${userId}\n${at} UTC`} />
      ))}
    </div>
  );
}
