/** The detail of an audit entry in words: its states in the language of the page, without the id of a session. */
import { useTranslation } from 'react-i18next';

const session = /\bsession [0-9A-HJKMNP-TV-Z]{26}(?:; |, | |$)/g;
const change = /\b(?:\w+=)?(\w+)(?: to | ?-> ?)(\w+)\b/g;
const state = /\b[a-z]+(?:[A-Z][a-z]+)+\b/g;

export function useSaid(): (detail: string) => string {
  const { t, i18n } = useTranslation();
  const known = (code: string) => i18n.exists(`state.${code}`);
  const word = (code: string) => t(`state.${code}`, { defaultValue: code });
  return (detail) =>
    detail
      .replace(session, '')
      .replace(change, (all: string, from: string, to: string) =>
        (known(from) || /^\d+$/.test(from)) && known(to)
          ? `${word(from)} ${i18n.dir() === 'rtl' ? '←' : '→'} ${word(to)}`
          : all,
      )
      .replace(state, word)
      .replace(/\bservice:(?=\w)/g, '');
}
