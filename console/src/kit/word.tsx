/** A text in a cell of a list. It follows the language, unlike a text created with the columns. */
import type { TFunction } from 'i18next';
import { useTranslation } from 'react-i18next';
import type { TextKey } from '../text/key';

export function Word({ of, ...values }: { of: TextKey; [value: string]: string | number }) {
  const { t } = useTranslation();
  return t(of, values);
}

/** The name of a level: translated for the levels of a new installation, otherwise as the operators wrote it. */
export const levelName = (label: string, t: TFunction): string => t(`level.${label}`, { defaultValue: label });

/** A level by its number and its name. */
export const numberedLevel = (l: { levelId: number | string; levelLabel: string }, t: TFunction): string =>
  `${l.levelId} · ${levelName(l.levelLabel, t)}`;

/** The name of a parameter: translated for the parameters that the service reads. */
export const parameterName = (p: { code: string; name: string }, t: TFunction): string =>
  t(`parameter.of.${p.code}`, { defaultValue: p.name });
