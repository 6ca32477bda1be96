/** Tabs as the ARIA practices describe them: arrow keys move and choose, Tab goes on into the panel. */

/** @param {HTMLElement} list element with role=tablist; its tabs name their panels.
 *  @param {(name: string) => void} chosen receives the id of the panel
 *  @returns {(id: string) => void} chooses a tab by its id */
export function tabs(list, chosen) {
  const all = [...list.querySelectorAll('[role="tab"]')];
  const choose = (tab) => {
    for (const each of all) {
      const here = each === tab;
      each.setAttribute('aria-selected', String(here));
      each.tabIndex = here ? 0 : -1;
      document.getElementById(each.getAttribute('aria-controls')).hidden = !here;
    }
    chosen(tab.getAttribute('aria-controls'));
  };
  list.addEventListener('click', (event) => {
    const tab = event.target.closest('[role="tab"]');
    if (tab) choose(tab);
  });
  list.addEventListener('keydown', (event) => {
    const forward = getComputedStyle(list).direction === 'rtl' ? 'ArrowLeft' : 'ArrowRight';
    const backward = forward === 'ArrowLeft' ? 'ArrowRight' : 'ArrowLeft';
    const at = all.indexOf(event.target);
    const to = { [forward]: at + 1, [backward]: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    const tab = all.at(to % all.length);
    tab.focus();
    choose(tab);
  });
  return (id) => choose(document.getElementById(id));
}
