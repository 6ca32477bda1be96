/** Adds a passkey of this browser to the user's own account. */
import { Button } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { about, attest, dismissed, supported } from '../../../web/static/castellan-passkey.js';
import { useAct } from '../app/act';
import { client, Refusal, type Schemas } from '../app/api';
import { Problem } from '../app/problem';
import { useMay } from '../app/session';

const devices = '/auth/devices';

export function AddPasskey() {
  const { t } = useTranslation();
  const may = useMay();
  const add = useAct('post', devices, [devices]);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Refusal>();
  if (!supported() || !may('POST /auth/devices/passkey')) return null;
  const run = async () => {
    setBusy(true);
    setProblem(undefined);
    add.clear();
    try {
      const attestation = (await attest(client())) as Schemas['PasskeyAttestation'];
      await add.run({ ...about(), attestation });
    } catch (error) {
      if (!dismissed(error)) setProblem(Refusal.of(error, 'POST /auth/devices/passkey'));
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <Button size="xs" loading={busy || add.busy} data-testid="passkey-add" onClick={() => void run()}>
        {t('own.addPasskey')}
      </Button>
      <Problem of={problem ?? add.problem} />
      {add.view}
    </>
  );
}
