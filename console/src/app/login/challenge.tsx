/** A challenge on the screen: all its methods with their deadlines, until the flow is done. The login uses it too. */
import { Alert, Button, Center, Checkbox, Group, Loader, PinInput, Stack, Text, Title } from '@mantine/core';
import { Suspense, useEffect, useReducer, useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { Flow } from '../../../../web/static/castellan-client.js';
import { approve, dismissed, supported } from '../../../../web/static/castellan-passkey.js';
import { Refusal } from '../api';
import { Problem, Why } from '../problem';
import { useNow } from '../../kit/now';

type Method = Flow['methods'][number];

interface Props {
  flow: Flow;
  /** The level of the headings: below a page or a dialog. */
  level?: 2 | 3;
  /** The write that requires the challenge. A login has none, because an anonymous caller gets no explanation. */
  asked?: string;
  onCancel: () => void;
}

export function Challenge({ flow, level = 3, asked, onCancel }: Props) {
  const { t } = useTranslation();
  const [, redraw] = useReducer((n: number) => n + 1, 0);
  useEffect(() => {
    const events = ['method', 'transport', 'done', 'closed'];
    for (const name of events) flow.addEventListener(name, redraw);
    return () => {
      for (const name of events) flow.removeEventListener(name, redraw);
    };
  }, [flow]);
  const away = useAway(flow);
  const open = flow.methods.filter((m: Method) => !m.complete);
  return (
    <Stack gap="lg" data-testid="challenge">
      <Text c="dimmed">{t('challenge.lead')}</Text>
      {away && (
        <Alert color="yellow" role="status" data-testid="away">
          {t('challenge.away')}
        </Alert>
      )}
      {flow.methods.map((m: Method) => (
        <Answer key={m.id} flow={flow} method={m} level={level} first={m === open[0]} />
      ))}
      {flow.challenge?.rememberDays && (
        <Checkbox
          data-testid="remember"
          label={t('challenge.remember', { days: flow.challenge.rememberDays })}
          description={t('challenge.rememberHelp')}
          onChange={(event) => flow.rememberBrowser(event.currentTarget.checked)}
        />
      )}
      <Group justify="space-between">
        <Suspense fallback={<span />}>{asked ? <Why asked={asked} /> : <span />}</Suspense>
        <Button variant="default" onClick={onCancel} data-testid="challenge-cancel">
          {t('cancel')}
        </Button>
      </Group>
    </Stack>
  );
}

const AWAY_MS = 20_000; // longer than the polling interval of a flow

/** Whether the service is unreachable; the flow keeps retrying. */
function useAway(flow: Flow): boolean {
  const [since, setSince] = useState(0);
  useEffect(() => {
    const lost = () => setSince(Date.now());
    const found = () => setSince(0);
    const transport = (event: Event) =>
      (event as CustomEvent<{ name: string }>).detail.name === 'socket' ? found() : undefined;
    flow.addEventListener('error', lost);
    flow.addEventListener('method', found);
    flow.addEventListener('transport', transport);
    return () => {
      flow.removeEventListener('error', lost);
      flow.removeEventListener('method', found);
      flow.removeEventListener('transport', transport);
    };
  }, [flow]);
  return useNow(1000) - since < AWAY_MS;
}

function left(until: number, now: number): string {
  const s = Math.max(0, Math.round((until - now) / 1000));
  return `${Math.floor(s / 60)}:${String(s % 60).padStart(2, '0')}`;
}

interface AnswerProps {
  flow: Flow;
  method: Method;
  level: 2 | 3;
  first: boolean;
}

function Answer({ flow, method, level, first }: AnswerProps) {
  const { t } = useTranslation();
  const [value, setValue] = useState('');
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Refusal>();
  const [wrong, setWrong] = useState(0);
  const now = useNow(1000);
  const run = async (step: 'complete' | 'renew', work: () => Promise<unknown>) => {
    setBusy(true);
    setProblem(undefined);
    try {
      await work();
    } catch (error) {
      if (dismissed(error)) return;
      const refusal = Refusal.of(error, `POST /auth/2fa/challenge/${step}`);
      setProblem(refusal);
      if (refusal.status === 0) return; // the service did not receive the code: it stays
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
        <Title order={level} size="h5">
          {name} {method.hint && <bdi dir="ltr">{method.hint}</bdi>}
        </Title>
        <Text size="sm" c="dimmed" dir="ltr">
          {left(method.expiresAt, now)}
        </Text>
      </Group>
      {method.name === 'PUSH' ? (
        <>
          {method.webauthn && supported() && (
            <Button
              data-testid="passkey-approve"
              loading={busy}
              onClick={() => void run('complete', () => approve(flow, method))}
            >
              {t('challenge.passkey')}
            </Button>
          )}
          <Waiting number={method.matchNumber} />
        </>
      ) : (
        <PinInput
          key={wrong} // after a wrong code the first digit gets the focus
          length={6}
          value={value}
          onChange={setValue}
          type="number"
          oneTimeCode
          // eslint-disable-next-line jsx-a11y/no-autofocus -- the step asks for this code and nothing else
          autoFocus={first || wrong > 0}
          disabled={busy}
          aria-label={name}
          data-testid={`code-${method.name}`}
          dir="ltr"
          w="fit-content"
          getInputProps={(place: number) => ({
            'aria-label': t('challenge.digit', { name, place: place + 1 }),
            'data-autofocus': (place === 0 && first) || undefined, // a dialog focuses the element with this attribute
          })}
          onComplete={(code) => void run('complete', () => flow.complete(method.id, method.name, code))}
        />
      )}
      {problem?.status === 0 && value.length === 6 && (
        <Button
          variant="default"
          size="compact-sm"
          w="fit-content"
          disabled={busy}
          onClick={() => void run('complete', () => flow.complete(method.id, method.name, value))}
        >
          {t('again')}
        </Button>
      )}
      {renewal !== 'none' && (
        <Button
          variant="subtle"
          size="compact-sm"
          w="fit-content"
          data-testid="renew"
          disabled={renewal !== 'open' || busy}
          onClick={() => void run('renew', () => flow.renew(method.id, method.name))}
        >
          {renewal === 'early' ? t('challenge.renewIn', { time: left(method.renewAt, now) }) : t('challenge.renew')}
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
          <Text fz={28} fw={700} dir="ltr" data-testid="match-number">
            {number}
          </Text>
        )}
        <Text size="sm">{t(number ? 'challenge.match' : 'challenge.push')}</Text>
        <Loader type="dots" aria-hidden />
      </Stack>
    </Center>
  );
}
