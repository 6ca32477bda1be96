/** The current time for a part of the page that shows or uses it. */
import { useSyncExternalStore } from 'react';

const LONGEST_WAIT_MS = 10_000;

/** The parts that follow a clock, by its period. A list has hundreds of times, and each period has one timer. */
const clocks = new Map<number, { timer: ReturnType<typeof setInterval>; parts: Set<() => void> }>();

function follow(periodMs: number, changed: () => void): () => void {
  let clock = clocks.get(periodMs);
  if (!clock) {
    const parts = new Set<() => void>();
    clock = { parts, timer: setInterval(() => parts.forEach((part) => part()), periodMs) };
    clocks.set(periodMs, clock);
  }
  const { parts, timer } = clock;
  parts.add(changed);
  return () => {
    parts.delete(changed);
    if (parts.size > 0) return;
    clearInterval(timer);
    clocks.delete(periodMs);
  };
}

/**
 * Milliseconds since 1970, rounded down to a multiple of the step. The part is rendered again after a step, at most ten
 * seconds late, and not in between.
 */
export function useNow(stepMs: number): number {
  return useSyncExternalStore(
    (changed) => follow(Math.min(stepMs, LONGEST_WAIT_MS), changed),
    () => Math.floor(Date.now() / stepMs) * stepMs,
  );
}
