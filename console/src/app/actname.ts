import type { TFunction } from 'i18next';

/** The name of an act of the audit in the reader's language, where it has one; else as the audit writes it. */
export function actName(action: string, t: TFunction): string {
  return t(`act.${action}`, { defaultValue: action });
}
