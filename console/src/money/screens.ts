/** The screens of balances, transactions and providers. */
import type { Screen } from '../app/screens';

export const money: Screen[] = [
];
