/** The next step of a list without rows. */
import { Button } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import type { PlainPath } from '../app/address';
import { useMay } from '../app/session';
import { useAddressed } from './drawer';
import { ButtonLink } from '../app/frame/link';
import type { TextKey } from '../text/key';

/** The next step where a list has no rows, for users with its permission: a form of the screen, or another screen. */
export interface Next {
  /** Key of its name. */
  title: TextKey;
  needs: string;
  /** The name of the form in the address; the screen has its button. */
  form?: string;
  to?: PlainPath;
}

export function NextStep({ of: { title, needs, form, to } }: { of: Next }) {
  const { t } = useTranslation();
  const may = useMay();
  const drawer = useAddressed('form', form ?? '');
  if (!may(needs)) return null;
  return to ? (
    <ButtonLink to={to} size="xs" variant="default" data-testid="next-step">
      {t(title)}
    </ButtonLink>
  ) : (
    <Button size="xs" variant="default" onClick={drawer.open} data-testid="next-step">
      {t(title)}
    </Button>
  );
}
