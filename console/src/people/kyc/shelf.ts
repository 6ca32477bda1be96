/**
 * The images of cases. They are blobs in memory, never in the query cache. The open case and the next one are kept;
 * all others are revoked.
 */
import { useEffect, useState } from 'react';
import { ask } from '../../app/api';
import { fetchPicture } from '../../kit/picture';
import type { Answer } from '../../kit/read';
import { fileOf, isPicture, type Document } from './document';

export interface Shot {
  /** front, back, selfie: a part of the identity; otherwise the name of a document. */
  part: string;
  known: boolean;
  url: string;
}

export interface Shots {
  /** The newest document of the identity, "" for none. */
  documentId: string;
  shots: Shot[];
}

interface Place {
  gone: boolean;
  urls: string[];
  /** Read and decoded before they are shown. */
  images: HTMLImageElement[];
  shots: Promise<Shots>;
  now?: Shots;
}

const shelf = new Map<string, Place>();
const mostOthers = 3;

/** Reads the images of a case, unless they are loaded already. */
export function take(userId: string, mayOpen: boolean): Promise<Shots> {
  let place = shelf.get(userId);
  if (!place) {
    const made: Place = { gone: false, urls: [], images: [], shots: Promise.resolve({ documentId: '', shots: [] }) };
    made.shots = load(userId, mayOpen, made);
    made.shots.then(
      (shots) => {
        made.now = shots;
      },
      () => shelf.delete(userId),
    ); // the next call tries again
    shelf.set(userId, made);
    place = made;
  }
  return place.shots;
}

/** Releases every case but these. */
export function keepOnly(...userIds: string[]): void {
  for (const [userId, place] of shelf) {
    if (userIds.includes(userId)) continue;
    shelf.delete(userId);
    place.gone = true;
    for (const url of place.urls) URL.revokeObjectURL(url);
    place.images = [];
  }
}

async function load(userId: string, mayOpen: boolean, place: Place): Promise<Shots> {
  const kept = (url: string) => {
    if (place.gone) {
      URL.revokeObjectURL(url);
      return url;
    }
    const image = new Image();
    image.src = url;
    void image.decode().catch(() => undefined);
    place.urls.push(url);
    place.images.push(image);
    return url;
  };
  const images = await ask<Answer<'/user/get-kyc-images'>>('/user/get-kyc-images', { query: { userId } });
  const data = images.data;
  const shots: Shot[] = [];
  const parts = { front: data.frontImage, back: data.backImage, selfie: data.selfieImage };
  for (const [part, image] of Object.entries(parts)) {
    if (image) shots.push({ part, known: true, url: kept(URL.createObjectURL(blob(image))) });
  }
  if (shots.length === 0 && mayOpen) {
    // uploads have no type: the bytes decide
    const query = { userId, status: 'active', reason: 'waitingApproval' };
    const waiting = await ask<Document[]>('/user/get-documents', { query });
    for (const d of waiting.filter(isPicture).slice(0, mostOthers)) {
      shots.push({ part: d.name, known: false, url: kept(await fetchPicture(fileOf(d.id))) });
    }
  }
  return { documentId: images.documentId, shots };
}

/** The bytes of a data URL, which the page may not fetch. */
function blob(url: string): Blob {
  const [head = '', text = ''] = url.split(',', 2);
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return new Blob([bytes], { type: /^data:([^;]+)/.exec(head)?.[1] ?? 'image/jpeg' });
}

/** The images of the open case. */
export function useShots(userId: string, mayOpen: boolean): { shots?: Shots; problem?: unknown } {
  const [state, setState] = useState<{ of: string; shots?: Shots; problem?: unknown }>(() => ({
    of: userId,
    shots: shelf.get(userId)?.now,
  }));
  useEffect(() => {
    let live = true;
    take(userId, mayOpen).then(
      (shots) => {
        if (live) setState({ of: userId, shots });
      },
      (problem: unknown) => {
        if (live) setState({ of: userId, problem });
      },
    );
    return () => {
      live = false;
    };
  }, [userId, mayOpen]);
  return state.of === userId ? state : {};
}
