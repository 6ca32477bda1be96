/** The messages of the service as sentences. On the wire they are fragments, as Go writes its errors. */
import type { Field } from './api';

/** The verbs at the start of a message about a field: "has too many decimals". */
const verb = /^(must|has|is|are|does|cannot|needs|may|names|holds|would)\b/;

/**
 * A message with a capital letter and a full stop. A message about one field, "amount: has too many decimals", becomes
 * "The field amount has too many decimals." in English; the other languages keep the colon.
 */
export function sentence(message: string, language: string, errors: Field[] = []): string {
  const [only] = errors;
  const about = errors.length === 1 && only && message === `${only.field}: ${only.message}` && verb.test(only.message);
  const text = (about && language === 'en' ? `The field ${only.field} ${only.message}` : message).trim();
  const first = [...text][0];
  if (!first) return '';
  const code = /^\S*[A-Z_./]\S*(\s|$)/.test(text); // a name, such as castellan.yaml, keeps its letters
  const begun = code ? text : first.toLocaleUpperCase(language) + text.slice(first.length);
  return /[.!?…:؟۔]$/.test(begun) ? begun : `${begun}.`;
}
