/** The lock after a quarter of an hour in which nobody touched the console, in any of its tabs. */
import { session } from '../session';

const IDLE_MS = 15 * 60_000;
const LOOK_MS = 2_000;
const touches = ['pointerdown', 'pointermove', 'keydown', 'wheel', 'touchmove'];

/** Calls lock when the time is over; the returned function stops it. */
export function watch(lock: () => void): () => void {
  // By the clock on the wall: the timers of a machine that sleeps stand still.
  const look = () => {
    const over = Date.now() - session.touched() >= IDLE_MS;
    if (over && session.now().token) lock();
    return over;
  };
  const touch = (event: Event) => {
    // A pointer that lies still moves, for the browser, when the page below it does.
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
