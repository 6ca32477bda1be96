/**
 * The login above a screen whose session ended. It covers everything: dialogs, menus and hotkeys of the screen are
 * neither visible nor reachable. The input below stays.
 */
import { Button } from '@mantine/core';
import { useEffect, useRef } from 'react';
import { useTranslation } from 'react-i18next';
import { Login } from './login';
import { session } from '../session';

// In the capture phase: otherwise Escape would close the dialog below and discard its input.
addEventListener(
  'keydown',
  (event) => {
    if (event.key !== 'Escape' || !session.now().over) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  },
  { capture: true },
);

export function Lock({ onStranger }: { onStranger: () => void }) {
  const { t } = useTranslation();
  const dialog = useRef<HTMLDialogElement>(null);
  const show = () => {
    dialog.current?.showModal();
    const fields = [...(dialog.current?.querySelectorAll('input') ?? [])];
    fields.find((field) => !field.value && field.checkVisibility())?.focus();
  };
  useEffect(show, []);
  return (
    <dialog
      ref={dialog}
      className="lock"
      aria-label={t('login.title')}
      data-testid="lock"
      onKeyDown={(event) => event.stopPropagation()}
      onCancel={(event) => event.preventDefault()}
      onClose={show}
    >
      <Login onDone={(same) => same || onStranger()} />
      <Button variant="subtle" onClick={() => session.leave()} data-testid="leave">
        {t('login.leave')}
      </Button>
    </dialog>
  );
}
