/** The routes, built from the list of screens. The search of each address is a set of texts by name. */
import { createRootRoute, createRoute, createRouter, type ErrorComponentProps } from '@tanstack/react-router';
import { texts, type Path, type Searches } from './address';
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

const routeOf = <P extends Path>(screen: Screen & { path: P }) =>
  createRoute({
    getParentRoute: () => root,
    path: screen.path,
    component: place(screen),
    validateSearch: (search: Record<string, unknown>): Searches[P] => texts(search),
  });

/** The types of the routes, as the router's generator writes them for routes in files. */
type Routes = { [P in Path]: ReturnType<typeof routeOf<P>> };
interface Typed {
  fullPaths: Path;
  to: Path;
  id: Path;
  fileRoutesByFullPath: Routes;
  fileRoutesByTo: Routes;
  fileRoutesById: Routes;
}

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof routerOf>;
  }
}

export const routerOf = (screens: Screen[]) =>
  createRouter({
    routeTree: root.addChildren(screens.map((screen) => routeOf(screen)))._addFileTypes<Typed>(),
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
