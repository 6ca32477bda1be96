/** Languages: tr, en, ar. A missing text is shown as its key, and a test finds it. */
import i18next from 'i18next';
import { initReactI18next } from 'react-i18next';
import { script } from './script';

export const languages = { en: 'English', tr: 'Türkçe', ar: 'العربية' } as const;
export type Language = keyof typeof languages;

const texts: Record<Language, () => Promise<{ default: object }>> = {
  en: () => import('../text/en'),
  tr: () => import('../text/tr'),
  ar: () => import('../text/ar'),
};

export const isRTL = (language: string) => language === 'ar';

/** The language chosen here, otherwise the first supported language of the browser, otherwise English. */
function preferred(): Language {
  const wanted = [localStorage.getItem('castellan.language') ?? '', ...navigator.languages];
  for (const tag of wanted) {
    const short = tag.slice(0, 2).toLowerCase();
    if (short in languages) return short as Language;
  }
  return 'en';
}

export async function startTexts(): Promise<void> {
  await i18next.use(initReactI18next).init({
    lng: 'none',
    fallbackLng: false,
    interpolation: { escapeValue: false },
    returnNull: false,
    keySeparator: false,
    nsSeparator: false, // keys are flat: "users.title"
  });
  await speak(preferred());
}

/** Changes the language. With pseudo, English texts are forty percent longer, for layout tests. */
export async function speak(language: Language): Promise<void> {
  const { default: words } = await script(texts[language]);
  const pseudo = new URLSearchParams(location.search).has('pseudo');
  i18next.addResourceBundle(language, 'translation', pseudo ? longer(words) : words, true, true);
  await i18next.changeLanguage(language);
  document.documentElement.lang = language;
  document.documentElement.dir = isRTL(language) ? 'rtl' : 'ltr';
  localStorage.setItem('castellan.language', language);
}

function longer(words: object): Record<string, string> {
  return Object.fromEntries(
    Object.entries(words).map(([key, text]: [string, string]) => [
      key,
      `${text}${'·'.repeat(Math.ceil(text.length * 0.4))}`,
    ]),
  );
}
