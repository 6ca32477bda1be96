/** A person in a row: initials, the name, and below it the contact data for callers who may read them. */
import { useTranslation } from 'react-i18next';

/** The first letters of the first and the last word of a name. */
export function initials(name: string): string {
  const words = name.trim().split(/\s+/).filter(Boolean);
  const ends = words.length > 1 ? [words[0], words.at(-1)] : words;
  return ends.map((word) => [...(word ?? '')][0]?.toLocaleUpperCase() ?? '').join('');
}

export function Named({ name, contact }: { name?: string | null; contact?: string | null }) {
  const { t } = useTranslation();
  return (
    <span className="person" data-testid="customer">
      <span className="initials" aria-hidden>
        {initials(name ?? '') || '?'}
      </span>
      <span className="about">
        <bdi className={name ? 'name' : 'name unnamed'}>{name || t('person.noName')}</bdi>
        {contact && (
          <bdi dir="ltr" className="contact">
            {contact}
          </bdi>
        )}
      </span>
    </span>
  );
}
