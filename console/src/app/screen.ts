/** The type of a screen, and the list of all screens. It imports no screen, so a screen can import it. */
import type { ComponentType } from 'react';
import type { TextKey } from '../text/key';
import type { Path } from './address';

export interface Screen {
  path: Path;
  /** Key of its name. */
  title: TextKey;
  group: 'work' | 'people' | 'money' | 'content' | 'security' | 'system' | 'own';
  /** The endpoints that the user must be allowed to call; otherwise the screen is hidden. */
  needs: string[];
  load: () => Promise<{ default: ComponentType }>;
  /** Not in the menu: another screen links to it. */
  inner?: boolean;
  /** The path of the screen whose menu entry this screen shares. Above both, tabs lead from one to the other. */
  under?: string;
  /** Key of the name of the menu entry, where it differs from the title. */
  family?: TextKey;
  /** The icon of the menu entry. */
  icon?: ComponentType<{ size?: number; stroke?: number }>;
}

let provided: Screen[] = [];
let navigate: (to: string) => void = () => undefined;

/** Sets the list of screens and the navigation between them, before the first screen is rendered. */
export function provideScreens(list: Screen[], go: (to: string) => void): void {
  provided = list;
  navigate = go;
}

/** Opens an address from outside the routes, where the hooks of the router do not work. */
export const openScreen = (to: string): void => navigate(to);

/** All screens, in the order of the menu within each group. */
export const allScreens = (): Screen[] => provided;

/**
 * The screens that a caller finds in the menu and the palette. Home shows the pending work, so a caller who has only
 * the own account does not get it.
 */
export function offeredScreens(may: (endpoint: string) => boolean): Screen[] {
  const offered = provided.filter((s) => !s.inner && s.needs.every(may));
  const own = offered.filter((s) => s.group === 'own');
  return offered.length > own.length + 1 ? offered : own;
}
