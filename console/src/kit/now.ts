/** The current time for a part of the page that shows or uses it. */
import { useSyncExternalStore } from 'react';

const LONGEST_WAIT_MS = 10_000;

/**
 * Milliseconds since 1970, rounded down to a multiple of the step. The part is rendered again after a step, at most ten
 * seconds late, and not in between.
 */
export function useNow(stepMs: number): number {
  return useSyncExternalStore(
    (changed) => {
      const clock = setInterval(changed, Math.min(stepMs, LONGEST_WAIT_MS));
      return () => clearInterval(clock);
    },
    () => Math.floor(Date.now() / stepMs) * stepMs,
  );
}
