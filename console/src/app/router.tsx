/** The routes, made of the list of screens. The search of each address is kept as it is: text by name. */
import { Loader } from '@mantine/core';
import { createRootRoute, createRoute, createRouter, type ErrorComponentProps } from '@tanstack/react-router';
import { useEffect, useState, type ComponentType } from 'react';
import { useTranslation } from 'react-i18next';
import { Refusal } from './api';
import Frame, { Again, Missing, Nowhere } from './frame';
import { base } from './page';
import { screens, type Screen } from './screens';
import { useMay } from './session';

/**
 * A screen, once its script is here, for those who may see it. Where the script cannot be read the person decides when
 * to try again: the router's own way reloads the page at once, and without a network nothing comes back.
 */
function place({ load, needs }: Screen) {
  let Page: ComponentType | undefined;
  const preload = async () => {
    Page ??= (await load()).default;
  };
  function Place() {
    const { t } = useTranslation();
    const may = useMay();
    const [, redraw] = useState(0);
    const [problem, setProblem] = useState<unknown>();
    const fetched = () => redraw((n) => n + 1);
    useEffect(() => {
      if (!Page) preload().then(fetched, setProblem);
    }, []);
    const again = () => preload().then(fetched, anew);
    if (!needs.every(may)) return <Nowhere text="forbidden" />;
    if (Page) return <Page />;
    return problem ? <Again of={problem} onClick={() => void again()} /> : <Loader aria-label={t('loading')} />;
  }
  return Object.assign(Place, { preload: () => preload().catch(() => undefined) });
}

/** Chromium never asks again for a script that it once could not read; but for the page, once there is a service. */
async function anew() {
  const page = await fetch(location.href, { cache: 'no-store' }).catch(() => undefined);
  if (page?.ok) location.reload();
}

/** A screen that fell over; the frame around it stands. */
function Broken({ error, reset }: ErrorComponentProps) {
  return <Again of={new Refusal(200, 'PAGE', String(error))} onClick={reset} />;
}

const root = createRootRoute({ component: Frame, notFoundComponent: Missing });

function texts(search: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(search)
      .filter(([, v]) => v !== undefined && v !== '')
      .map(([k, v]) => [k, String(v)]),
  );
}

const routes = screens.map((screen) =>
  createRoute({
    getParentRoute: () => root,
    path: screen.path,
    component: place(screen),
    validateSearch: texts,
  }),
);

export const router = createRouter({
  routeTree: root.addChildren(routes),
  basepath: `${base}/console`,
  defaultPreload: 'intent',
  defaultErrorComponent: Broken,
  // Plain names and values, so that an address can be read and typed.
  parseSearch: (text) => Object.fromEntries(new URLSearchParams(text)),
  stringifySearch: (search) => {
    const text = new URLSearchParams(texts(search)).toString();
    return text ? `?${text}` : '';
  },
});
