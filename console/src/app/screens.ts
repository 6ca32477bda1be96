/**
 * The list of all screens. The menu, the palette and the routes are built from it. A screen is loaded when it is
 * opened.
 */
import { content } from '../content/screens';
import { kyc } from '../kyc/screens';
import { money } from '../money/screens';
import { own } from '../own/screens';
import { security } from '../security/screens';
import { system } from '../system/screens';
import { user } from '../user/screens';
import type { Screen } from './screen';

/** In the order of the menu, within each group. */
export const screens: Screen[] = [...system, ...kyc, ...user, ...money, ...content, ...security, ...own];
