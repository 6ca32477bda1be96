/** The screens of documents, identity and AML. */
import type { Screen } from '../app/screens';

export const kyc: Screen[] = [
];
