/** A challenge on the screen: every method of it, with its deadline, until the flow is done. Login uses it too. */
import { Alert, Button, Center, Group, Loader, PinInput, Stack, Text, Title } from '@mantine/core';
import { useEffect, useReducer, useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { Flow } from '../../../web/static/castellan-client.js';
import { Refusal } from './api';
import { Problem } from './problem';

type Method = Flow['methods'][number];

export function Challenge({ flow, onCancel }: { flow: Flow; onCancel: () => void }) {
  const { t } = useTranslation();
  const [, redraw] = useReducer((n: number) => n + 1, 0);
  useEffect(() => {
    const clock = setInterval(redraw, 1000);
    const events = ['method', 'transport', 'done', 'closed'];
    for (const name of events) flow.addEventListener(name, redraw);
    return () => {
      clearInterval(clock);
      for (const name of events) flow.removeEventListener(name, redraw);
    };
  }, [flow]);
  const open = flow.methods.filter((m: Method) => !m.complete);
  return (
    <Stack gap="lg" data-testid="challenge">
      <Text c="dimmed">{t('challenge.lead')}</Text>
      {flow.methods.map((m: Method) => (
        <Answer key={m.id} flow={flow} method={m} first={m === open[0]} />
      ))}
      <Group justify="flex-end">
        <Button variant="default" onClick={onCancel} data-testid="challenge-cancel">
          {t('cancel')}
        </Button>
      </Group>
    </Stack>
  );
}

function left(until: number): string {
  const s = Math.max(0, Math.round((until - Date.now()) / 1000));
  return `${Math.floor(s / 60)}:${String(s % 60).padStart(2, '0')}`;
}

function Answer({ flow, method, first }: { flow: Flow; method: Method; first: boolean }) {
  const { t } = useTranslation();
  const [value, setValue] = useState('');
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Refusal>();
  const [wrong, setWrong] = useState(0);
  const run = async (work: () => Promise<unknown>) => {
    setBusy(true);
    setProblem(undefined);
    try {
      await work();
    } catch (error) {
      setProblem(Refusal.of(error));
      setValue('');
      setWrong((n) => n + 1);
    } finally {
      setBusy(false);
    }
  };
  const name = t(`method.${method.name}`);
  if (method.complete)
    return (
      <Alert color="green" title={name}>
        {t('challenge.complete')}
      </Alert>
    );
  const renewal = flow.renewal(method);
  return (
    <Stack gap="xs" data-testid={`method-${method.name}`}>
      <Group justify="space-between" wrap="nowrap">
        <Title order={3} size="h5">
          {name} {method.hint && <bdi dir="ltr">{method.hint}</bdi>}
        </Title>
        <Text size="sm" c="dimmed" dir="ltr">
          {left(method.expiresAt)}
        </Text>
      </Group>
      {method.name === 'PUSH' ? (
        <Waiting number={method.matchNumber} />
      ) : (
        <PinInput
          key={wrong} // after a wrong code the first digit has the focus
          length={6}
          value={value}
          onChange={setValue}
          type="number"
          oneTimeCode
          autoFocus={first || wrong > 0}
          disabled={busy}
          aria-label={name}
          data-testid={`code-${method.name}`}
          dir="ltr"
          getInputProps={(place: number) => ({
            'aria-label': t('challenge.digit', { name, place: place + 1 }),
            'data-autofocus': (place === 0 && first) || undefined, // a dialog gives the focus to what says so
          })}
          onComplete={(code) => run(() => flow.complete(method.id, method.name, code))}
        />
      )}
      {renewal !== 'none' && (
        <Button
          variant="subtle"
          size="compact-sm"
          w="fit-content"
          disabled={renewal !== 'open' || busy}
          onClick={() => run(() => flow.renew(method.id, method.name))}
        >
          {renewal === 'early' ? t('challenge.renewIn', { time: left(method.renewAt) }) : t('challenge.renew')}
        </Button>
      )}
      <Problem of={problem} />
    </Stack>
  );
}

function Waiting({ number }: { number?: string }) {
  const { t } = useTranslation();
  return (
    <Center>
      <Stack align="center" gap="xs">
        {number && (
          <Title order={2} dir="ltr" data-testid="match-number">
            {number}
          </Title>
        )}
        <Text size="sm">{t(number ? 'challenge.match' : 'challenge.push')}</Text>
        <Loader type="dots" aria-hidden />
      </Stack>
    </Center>
  );
}
