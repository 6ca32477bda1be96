/** The pending cases, the longest waiting first: documents without a decision. One page, read once. */
import { useQuery } from '@tanstack/react-query';
import { readPage } from '../../app/api';
import type { Document } from './document';
import { usePending } from './pending';

export const path = '/user/get-documents';
export const size = 200;
/** Not by status: only the reason has an index in this order, and nearly all documents are active. */
export const everything = { reason: 'waitingApproval', order: 'oldest' } as const;
/** If the identity is decided, only the address is pending: that is not an identity check. */
export const identities = { ...everything, kycConfirm: 'waitingApproval' } as const;

/** A case is represented by its oldest document, and contains the others. */
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
  const asked = { ...identities, limit: size }; // the same query as the list, so that both share one answer
  const page = useQuery({ queryKey: [path, asked], queryFn: ({ signal }) => readPage<Document>(path, asked, signal) });
  return gather(page.data?.rows ?? []).map((c) => c.userId);
}

const skipped = new Set<string>();

/** Postpones a case: it comes again with the next visit of the queue. */
export function skip(userId: string) {
  skipped.add(userId);
}

export function forgetSkipped() {
  skipped.clear();
}

/** The cases that follow one, without those that are decided or postponed. */
export function useNext(userId: string): string[] {
  const queue = useQueue();
  const { waiting, settled, failed } = usePending();
  const at = queue.indexOf(userId);
  const open = (id: string) =>
    id !== userId && !settled.has(id) && !skipped.has(id) && !failed.has(id) && !waiting.some((d) => d.userId === id);
  return [...queue.slice(at + 1), ...queue.slice(0, Math.max(at, 0))].filter(open);
}
