/** The screens of currencies, contracts, announcements and the rest of the back office. */
import type { Screen } from '../app/screens';

export const content: Screen[] = [
];
