/** Locks the console after 15 minutes without activity in any of its tabs. */
import { session } from '../session';

const IDLE_MS = 15 * 60_000;
const LOOK_MS = 2_000;
const touches = ['pointerdown', 'pointermove', 'keydown', 'wheel', 'touchmove'];

/** Calls lock when the time is over. The returned function stops the watch. */
export function watch(lock: () => void): () => void {
  // By wall clock: timers stop while the machine sleeps.
  const look = () => {
    const over = Date.now() - session.touched() >= IDLE_MS;
    if (over && session.now().token) lock();
    return over;
  };
  const touch = (event: Event) => {
    // The browser reports a move of a resting pointer when the page moves below it.
    const still = event instanceof PointerEvent && event.type === 'pointermove' && !event.movementX && !event.movementY;
    if (!still && !(session.now().token && look())) session.touch();
  };
  const clock = setInterval(look, LOOK_MS);
  const options = { capture: true, passive: true };
  for (const name of touches) document.addEventListener(name, touch, options);
  return () => {
    clearInterval(clock);
    for (const name of touches) document.removeEventListener(name, touch, options);
  };
}
