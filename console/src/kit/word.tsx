/** A text in a cell of a list. It follows the language, unlike a text created with the columns. */
import { useTranslation } from 'react-i18next';
import type { TextKey } from '../text/key';

export function Word({ of, ...values }: { of: TextKey; [value: string]: string | number }) {
  const { t } = useTranslation();
  return t(of, values);
}
