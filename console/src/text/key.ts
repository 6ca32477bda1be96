import type { ParseKeys } from 'i18next';

/** The key of a text. A key without an English text does not compile; words of the wire need a `defaultValue`. */
export type TextKey = ParseKeys;
