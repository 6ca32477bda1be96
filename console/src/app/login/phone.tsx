/** The two fields of a phone number, as the service takes it: countryCode and phoneNumber. */
import { TextInput } from '@mantine/core';
import { useTranslation } from 'react-i18next';

export interface Phone {
  countryCode?: string;
  phoneNumber?: string;
}

export function PhoneFields({ typed }: { typed: Phone }) {
  const { t } = useTranslation();
  return (
    <>
      <TextInput
        name="countryCode"
        defaultValue={typed.countryCode}
        label={t('login.countryCode')}
        inputMode="numeric"
        required
        dir="ltr"
        autoComplete="tel-country-code"
        data-testid="country-code"
      />
      <TextInput
        name="phoneNumber"
        defaultValue={typed.phoneNumber}
        label={t('login.phone')}
        inputMode="tel"
        required
        dir="ltr"
        autoComplete="tel-national webauthn"
        data-testid="phone"
      />
    </>
  );
}

/** The texts of a form by their names. */
export const textsOf = (form: HTMLFormElement): Record<string, string> =>
  Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, typeof value === 'string' ? value : '']));
