/** The routes, made of the list of screens. The search of each address is kept as it is: text by name. */
import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from '@tanstack/react-router';
import Frame, { Missing } from './frame';
import { base } from './page';
import { screens } from './screens';

const root = createRootRoute({ component: Frame, notFoundComponent: Missing });

function texts(search: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(search)
      .filter(([, v]) => v !== undefined && v !== '')
      .map(([k, v]) => [k, String(v)]),
  );
}

const routes = screens.map(({ path, load }) =>
  createRoute({
    getParentRoute: () => root,
    path,
    component: lazyRouteComponent(load),
    validateSearch: texts,
  }),
);

export const router = createRouter({
  routeTree: root.addChildren(routes),
  basepath: `${base}/console`,
  defaultPreload: 'intent',
  // Plain names and values, so that an address can be read and typed.
  parseSearch: (text) => Object.fromEntries(new URLSearchParams(text)),
  stringifySearch: (search) => {
    const text = new URLSearchParams(texts(search)).toString();
    return text ? `?${text}` : '';
  },
});
