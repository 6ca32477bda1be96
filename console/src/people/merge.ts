/**
 * Merges lists of the service, each newest first and read by cursor, into one stream. The next page of a list is read
 * when all its read events are shown. So a page of the stream costs at most one request per list, and the order is
 * right however long the lists are. A list that fails ends there, and the others continue.
 */
/** The lists with events of an account. */
export type EventKind = 'login' | 'audit' | 'act' | 'movement' | 'mail' | 'document' | 'blockage' | 'role';

export interface Event {
  kind: EventKind;
  /** A record of its kind. */
  id: string;
  /** Milliseconds since 1970. */
  at: number;
  record: object;
}

export interface Source {
  kind: EventKind;
  /** Reads the page after a cursor ('' for the first); next is '' at the end. */
  page: (cursor: string, signal?: AbortSignal) => Promise<{ events: Event[]; next: string }>;
}

/**
 * The events of each list that are read and not shown yet, and the next cursor. A list that is missing has not been
 * read.
 */
export type Place = Record<string, { waiting: Event[]; next: string }>;

export interface Taken {
  events: Event[];
  /** Lists that could not be read: their events from here on are missing. */
  failed: { kind: EventKind; problem: unknown }[];
  place: Place;
  /** Whether more events follow. */
  more: boolean;
}

/** The maximum number of reads for one page of the stream, where nearly all events are left out. */
const mostReads = 10;

/** Takes the next count events, without those that are left out. Fails when every list fails. */
export async function take(
  sources: Source[],
  from: Place,
  count: number,
  leftOut: (event: Event) => boolean,
  signal?: AbortSignal,
): Promise<Taken> {
  const place: Place = { ...from };
  const events: Event[] = [];
  const failed: Taken['failed'] = [];
  for (let reads = 0; ;) {
    const empty = sources.filter(({ kind }) => !place[kind] || (place[kind].waiting.length === 0 && place[kind].next));
    if (empty.length > 0) {
      if (reads++ === mostReads) return { events, failed, place, more: true };
      await Promise.all(
        empty.map(async ({ kind, page }) => {
          try {
            const read = await page(place[kind]?.next ?? '', signal);
            place[kind] = { waiting: read.events, next: read.next };
          } catch (problem) {
            if (signal?.aborted) throw problem;
            place[kind] = { waiting: [], next: '' };
            failed.push({ kind, problem });
          }
        }),
      );
      if (failed.length === sources.length) throw failed[0]!.problem;
      continue;
    }
    const first = newest(sources.map(({ kind }) => place[kind]?.waiting[0]));
    if (!first || events.length === count) return { events, failed, place, more: !!first };
    if (!leftOut(first)) events.push(first);
    const at = place[first.kind]!;
    place[first.kind] = { ...at, waiting: at.waiting.slice(1) };
  }
}

function newest(heads: (Event | undefined)[]): Event | undefined {
  return heads.reduce((best, one) => (one && (!best || one.at > best.at) ? one : best), undefined);
}
