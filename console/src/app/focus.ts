/**
 * Keeps the keyboard focus. The focused element may be removed (a handled row, a closed dialog, a finished login) or
 * disabled (a button while it works). The browser then drops the focus, and keyboard users start at the top of the
 * page again. This module returns the focus to its origin, or to the heading of the remaining part.
 */
interface Stop {
  element: HTMLElement;
  /** The part of the page that contains the element. */
  within: Element | null;
}

const parts = '[role="dialog"], [role="tabpanel"], main';
const kept = 20;
const soonMs = 50; // a closing dialog returns the focus by itself, after 10 ms

const stops: Stop[] = []; // the elements that had the focus, the latest last
let off: HTMLElement | undefined; // had the focus when it was disabled
let standIn: HTMLElement | undefined;
let byKeys = false;

function usable(e: HTMLElement): boolean {
  return e.isConnected && !e.matches(':disabled') && e.checkVisibility();
}

function give(e: HTMLElement, stands: boolean) {
  standIn = stands ? e : undefined;
  if (stands && !e.hasAttribute('tabindex')) {
    e.tabIndex = -1;
    e.style.outline = 'none'; // the user cannot act on a heading
  }
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
    if (off === last.element) give(last.element, false); // enabled again; otherwise the user clicked elsewhere
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
