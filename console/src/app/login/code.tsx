/** The current code of the operator's authenticator, for writes that require it besides the session (D-AUTH-08). */
import { Button, Group, Modal, PinInput, Stack, Text } from '@mantine/core';
import { useRef, useState, type ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { Refusal } from '../api';
import { Problem } from '../problem';

interface Code {
  /** Sends a write. If the service requires a code, the user is asked until it is right or cancelled (ABANDONED). */
  with: <T>(send: (otp?: string) => Promise<T>) => Promise<T>;
  view: ReactNode;
}

export function useCode(): Code {
  const { t } = useTranslation();
  const [open, setOpen] = useState(false);
  const [wrong, setWrong] = useState<Refusal>();
  const [value, setValue] = useState('');
  const answer = useRef<(otp?: string) => void>(undefined);

  function ask(why?: Refusal): Promise<string | undefined> {
    setWrong(why);
    setValue('');
    setOpen(true);
    return new Promise((resolve) => {
      answer.current = (otp) => {
        setOpen(false);
        resolve(otp);
      };
    });
  }

  async function through<T>(send: (otp?: string) => Promise<T>): Promise<T> {
    let otp: string | undefined;
    for (;;) {
      try {
        return await send(otp);
      } catch (error) {
        const { code } = Refusal.of(error);
        if (!(code === 'OTP_REQUIRED' && !otp) && code !== 'OTP_INVALID') throw error;
        otp = await ask(otp ? Refusal.of(error) : undefined);
        if (!otp) throw new Refusal(0, 'ABANDONED', '');
      }
    }
  }

  const view = (
    <Modal opened={open} onClose={() => answer.current?.()} title={t('code.title')} centered>
      <Stack data-testid="otp">
        <Text c="dimmed">{t('code.lead')}</Text>
        <PinInput
          length={6}
          value={value}
          onChange={setValue}
          type="number"
          oneTimeCode
          autoFocus // eslint-disable-line jsx-a11y/no-autofocus -- the dialog asks for this code and nothing else
          dir="ltr"
          w="fit-content"
          aria-label={t('method.TOTP')}
          data-testid="otp-code"
          onComplete={(otp) => answer.current?.(otp)}
          getInputProps={(place: number) => ({
            'aria-label': t('challenge.digit', { name: t('method.TOTP'), place: place + 1 }),
            'data-autofocus': place === 0 || undefined,
          })}
        />
        <Problem of={wrong} />
        <Group justify="flex-end">
          <Button variant="default" onClick={() => answer.current?.()}>
            {t('cancel')}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
  return { with: through, view };
}
