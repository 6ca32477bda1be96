import type { TFunction } from 'i18next';

/** The name of an audit action in the user's language, or its code where it has no name. */
export function actName(action: string, t: TFunction): string {
  return t(`act.${action}`, { defaultValue: action });
}
