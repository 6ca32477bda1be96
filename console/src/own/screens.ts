/** The screens of one's own security. */
import type { Screen } from '../app/screens';

export const own: Screen[] = [
];
