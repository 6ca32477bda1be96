/**
 * The reset of a forgotten password: codes by SMS and by mail, then the new password. The challenge brings a token that
 * sets the password once; a refused password does not consume it.
 */
import { Button, PasswordInput, Stack, Text } from '@mantine/core';
import { useEffect, useRef, useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { Flow } from '../../../../web/static/castellan-client.js';
import { client, Refusal } from '../api';
import { Problem } from '../problem';
import { Challenge } from './challenge';
import { PhoneFields, textsOf, type Phone } from './phone';

interface Props {
  typed: Phone;
  /** Leaves the reset, after the password was set or without it. */
  onDone: (set: boolean) => void;
}

export default function Reset({ typed, onDone }: Props) {
  const { t } = useTranslation();
  const [flow, setFlow] = useState<Flow>();
  const [once, setOnce] = useState('');
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Refusal>();
  const open = useRef<Flow>(undefined);
  useEffect(() => () => open.current?.close(), []);

  async function run(work: () => Promise<void>) {
    if (busy) return;
    setBusy(true);
    setProblem(undefined);
    try {
      await work();
    } catch (error) {
      const refusal = Refusal.of(error);
      if (refusal.code !== 'ABANDONED') setProblem(refusal);
    } finally {
      setFlow(undefined);
      setBusy(false);
    }
  }
  const prove = ({ countryCode, phoneNumber }: Phone) =>
    run(async () => {
      const begun = await client().start('POST', '/auth/password/reset', { countryCode, phoneNumber }, { xAuth: '' });
      open.current = begun;
      setFlow(begun);
      const outcome = await begun.done;
      const token = outcome.headers['ot-auth'];
      if (!outcome.success || !token) throw Refusal.outcome(outcome);
      setOnce(token);
    });
  const set = ({ password, passwordVerify }: Record<string, string>) =>
    run(async () => {
      const body = { password, passwordVerify };
      await client().start('POST', '/auth/password/update', body, { xAuth: '', headers: { 'ot-auth': once } });
      onDone(true);
    });

  if (flow) return <Challenge flow={flow} level={2} onCancel={() => flow.close()} />;
  const wrong = (name: string) => problem?.errors.find((e) => e.field === name)?.message;
  return (
    <form
      key={once}
      onSubmit={(event) => {
        event.preventDefault();
        void (once ? set : prove)(textsOf(event.currentTarget));
      }}
    >
      <Stack>
        <Text c="dimmed">{t(once ? 'login.newLead' : 'login.resetLead')}</Text>
        {once ? (
          <>
            <PasswordInput
              name="password"
              label={t('own.newPassword')}
              description={t('own.passwordRule')}
              error={wrong('password')}
              autoComplete="new-password"
              // eslint-disable-next-line jsx-a11y/no-autofocus -- the step asks for this password and nothing else
              autoFocus
              required
              data-testid="new-password"
            />
            <PasswordInput
              name="passwordVerify"
              label={t('own.again')}
              error={wrong('passwordVerify')}
              autoComplete="new-password"
              required
              data-testid="new-again"
            />
          </>
        ) : (
          <PhoneFields typed={typed} />
        )}
        <Button type="submit" loading={busy} data-testid="reset-send">
          {t(once ? 'login.setPassword' : 'login.sendCodes')}
        </Button>
        <Button variant="subtle" onClick={() => onDone(false)} data-testid="reset-leave">
          {t('login.back')}
        </Button>
        <Problem of={problem} />
      </Stack>
    </form>
  );
}
