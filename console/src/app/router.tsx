/** The routes, built from the list of screens. The search of each address is a set of texts by name. */
import { createRootRoute, createRoute, createRouter, type ErrorComponentProps } from '@tanstack/react-router';
import { texts } from './address';
import { Refusal } from './api';
import { Again, deferred } from './deferred';
import Frame, { Missing, Nowhere } from './frame/frame';
import { base } from './page';
import type { Screen } from './screen';
import { useMay } from './session';

/** A screen, for users with its permissions. Its mark names the shown screen: the address names the one that opens. */
function place({ load, needs, path }: Screen) {
  const Page = deferred(load);
  function Place() {
    const may = useMay();
    return (
      <>
        {needs.every(may) ? <Page /> : <Nowhere text="forbidden" />}
        <span hidden data-screen={path} />
      </>
    );
  }
  return Object.assign(Place, { preload: Page.preload });
}

/** Shown in the frame instead of a screen that threw an error. */
function Broken({ error, reset }: ErrorComponentProps) {
  return <Again of={new Refusal(200, 'PAGE', String(error))} onClick={reset} />;
}

const root = createRootRoute({ component: Frame, notFoundComponent: Missing });

const routeOf = (screen: Screen) =>
  createRoute({
    getParentRoute: () => root,
    path: screen.path,
    component: place(screen),
    validateSearch: texts,
  });

export const routerOf = (screens: Screen[]) =>
  createRouter({
    routeTree: root.addChildren(screens.map(routeOf)),
    basepath: `${base}/console`,
    defaultPreload: 'intent',
    defaultErrorComponent: Broken,
    // Plain names and values, so that users can read and type an address.
    parseSearch: (text) => Object.fromEntries(new URLSearchParams(text)),
    stringifySearch: (search) => {
      const text = new URLSearchParams(texts(search)).toString();
      return text ? `?${text}` : '';
    },
  });
