/**
 * Every screen: its address, its place in the menu, and the endpoints without which it is no use. The menu, the
 * palette and the routes come from here, and so does the test that asks where each endpoint is used. A screen is
 * loaded when it is opened.
 */
import type { ComponentType } from 'react';
import { content } from '../content/screens';
import { kyc } from '../kyc/screens';
import { money } from '../money/screens';
import { own } from '../own/screens';
import { security } from '../security/screens';
import { system } from '../system/screens';
import { user } from '../user/screens';

export interface Screen {
  path: string;
  /** Key of its name. */
  title: string;
  group: 'work' | 'people' | 'money' | 'content' | 'security' | 'system' | 'own';
  /** It is shown to those who may ask for all of these. */
  needs: string[];
  load: () => Promise<{ default: ComponentType }>;
  /** Not in the menu: it is reached from another screen. */
  inner?: boolean;
}

/** In the order of the menu, within each group. */
export const screens: Screen[] = [...system, ...kyc, ...user, ...money, ...content, ...security, ...own];
