/**
 * The focus is never lost. What has it may go away (a row that was acted on, a dialog that closes, a login that is
 * over) or be switched off (a button while it works). The browser then gives the focus to nobody, and who has no mouse
 * begins at the top of the page again. Here it goes back to where it came from, or to the heading of what is left.
 */
interface Stop {
  element: HTMLElement;
  /** The part of the page that it is in. */
  within: Element | null;
}

const parts = '[role="dialog"], [role="tabpanel"], main';
const kept = 20;
const soonMs = 50; // a dialog that closes gives the focus back by itself, after 10 ms

const stops: Stop[] = []; // where the focus has been, the latest last
let off: HTMLElement | undefined; // had the focus when it was switched off
let standIn: HTMLElement | undefined;
let byKeys = false;

function usable(e: HTMLElement): boolean {
  return e.isConnected && !e.matches(':disabled') && e.checkVisibility();
}

function give(e: HTMLElement, stands: boolean) {
  standIn = stands ? e : undefined;
  if (stands && !e.hasAttribute('tabindex')) e.tabIndex = -1;
  if (e !== document.activeElement) e.focus({ preventScroll: !byKeys });
}

function heading(part: Element): HTMLElement {
  return part.querySelector<HTMLElement>('h1, h2, h3') ?? (part as HTMLElement);
}

function restore() {
  const now = document.activeElement;
  const last = stops.at(-1);
  if (!last || (now && now !== document.body && now !== standIn)) return;
  if (usable(last.element)) {
    if (off === last.element) give(last.element, false); // it works again; else somebody clicked beside it
    off = undefined;
    return;
  }
  if (last.element.matches(':disabled')) off = last.element;
  for (const { element, within } of stops.toReversed()) {
    if (usable(element)) return give(element, false);
    if (within?.isConnected) return give(heading(within), true);
  }
  const main = document.querySelector('main');
  if (main) give(heading(main), true);
}

export function keepFocus(): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const soon = () => {
    timer ??= setTimeout(() => {
      timer = undefined;
      restore();
    }, soonMs);
  };
  document.addEventListener('focusin', ({ target }) => {
    if (target === standIn || !(target instanceof HTMLElement)) return;
    standIn = undefined;
    stops.push({ element: target, within: target.closest(parts) });
    if (stops.length > kept) stops.shift();
  });
  document.addEventListener('keydown', () => (byKeys = true), true);
  document.addEventListener('pointerdown', () => (byKeys = false), true);
  const watched = { childList: true, subtree: true, attributes: true, attributeFilter: ['disabled'] };
  new MutationObserver(soon).observe(document.body, watched);
}
