/** A text in a cell of a list: it follows the language, which a text that was made with the columns does not. */
import { useTranslation } from 'react-i18next';

export function Word({ of, ...values }: { of: string; [value: string]: string | number }) {
  const { t } = useTranslation();
  return t(of, values);
}
