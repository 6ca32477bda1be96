/** The cases that wait, who waits longest first: those of documents that nobody has decided on. One page, read once. */
import { useQuery } from '@tanstack/react-query';
import { readPage } from '../../app/api';
import type { Document } from './document';
import { usePending } from './pending';

export const path = '/user/get-documents';
export const size = 200;
/** Not by their status: the reason alone has an index in this order, and nearly all documents are active. */
export const everything = { reason: 'waitingApproval', order: 'oldest' } as const;
/** Where the identity is decided already the address alone waits: that is no identity check. */
export const identities = { ...everything, kycConfirm: 'waitingApproval' } as const;

/** A case stands for its oldest document; the others stand in it. */
export type Case = Document & { all: Document[] };

export function gather(documents: Document[]): Case[] {
  const cases = new Map<string, Case>();
  for (const d of documents) {
    if (d.status !== 'active') continue;
    const known = cases.get(d.userId);
    if (known) known.all.push(d);
    else cases.set(d.userId, { ...d, all: [d] });
  }
  return [...cases.values()];
}

/** The accounts of the queue, in its order. */
export function useQueue(): string[] {
  const asked = { ...identities, limit: size }; // as the list asks, so that both are one answer
  const page = useQuery({ queryKey: [path, asked], queryFn: ({ signal }) => readPage<Document>(path, asked, signal) });
  return gather(page.data?.rows ?? []).map((c) => c.userId);
}

const skipped = new Set<string>();

/** Leaves a case for later: it comes again with the next visit of the queue. */
export function skip(userId: string) {
  skipped.add(userId);
}

export function forgetSkipped() {
  skipped.clear();
}

/** The cases that follow one: those behind it first. Of those that are decided or left for later none. */
export function useNext(userId: string): string[] {
  const queue = useQueue();
  const { waiting, settled, failed } = usePending();
  const at = queue.indexOf(userId);
  const open = (id: string) =>
    id !== userId && !settled.has(id) && !skipped.has(id) && !failed.has(id) && !waiting.some((d) => d.userId === id);
  return [...queue.slice(at + 1), ...queue.slice(0, Math.max(at, 0))].filter(open);
}
