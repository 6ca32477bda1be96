/**
 * The login, with every method of a challenge. It fills the page at first, and covers the screen when a session ends.
 */
import {
  Alert,
  Anchor,
  Button,
  Card,
  Center,
  Group,
  PasswordInput,
  Stack,
  Tabs,
  TextInput,
  Title,
} from '@mantine/core';
import { useEffect, useRef, useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { Flow } from '../../../../web/static/castellan-client.js';
import { dismissed, login, offer, supported } from '../../../../web/static/castellan-passkey.js';
import { client, Refusal } from '../api';
import { Challenge } from './challenge';
import { deferred } from '../deferred';
import { languages, speak, type Language } from '../i18n';
import { Problem } from '../problem';
import { PhoneFields, textsOf, type Phone } from './phone';
import { session, useSession } from '../session';

const Reset = deferred(() => import('./reset'));

/** The user of this tab's session, for the login after its end. In memory only. */
let last: { userId: string; who: Partial<Who> } | undefined;

export function Login({ onDone }: { onDone: (same: boolean) => void }) {
  const { t } = useTranslation();
  const { over, userId } = useSession();
  const [flow, setFlow] = useState<Flow>();
  const [problem, setProblem] = useState<unknown>();
  // The input stays for the next try, without the password.
  const [typed, setTyped] = useState<Partial<Who>>(() => (over && last?.userId === userId ? last.who : {}));
  const open = useRef<Flow>(undefined);
  const busy = useRef(false); // a double click sends once
  const [reset, setReset] = useState<'open' | 'done'>();
  useEffect(() => () => open.current?.close(), []); // another tab was faster
  const follow = (begun: Flow, who: Partial<Who>) => {
    open.current = begun;
    setFlow(begun);
    begun.done
      .then((outcome) => {
        const token = outcome.headers['x-auth'];
        if (!outcome.success || !token) throw Refusal.outcome(outcome);
        const same = session.begin(token);
        last = { userId: session.now().userId, who: { ...who, password: '' } };
        onDone(same);
      })
      .catch((error: unknown) => {
        setFlow(undefined);
        if (Refusal.of(error).code !== 'ABANDONED') setProblem(error);
      });
  };
  const start = async (who: Partial<Who>, begin: () => Promise<Flow>) => {
    if (busy.current) return;
    busy.current = true;
    setProblem(undefined);
    setReset(undefined);
    setTyped({ ...who, password: '' });
    try {
      follow(await begin(), who);
    } catch (error) {
      if (!dismissed(error)) setProblem(error);
    } finally {
      busy.current = false;
    }
  };
  return (
    <Center mih={over ? undefined : '100vh'} p="md">
      <Card withBorder={!over} w="100%" maw={420} padding="xl" radius="md" component={over ? 'div' : 'main'}>
        <Stack>
          <Title order={1} size="h3">
            {t(reset === 'open' ? 'login.resetTitle' : 'login.title')}
          </Title>
          {reset === 'done' && <Alert color="green">{t('login.passwordSet')}</Alert>}
          {over && <Alert color="yellow">{t(over === 'idle' ? 'login.idle' : 'login.over')}</Alert>}
          {reset === 'open' ? (
            <Reset typed={typed} onDone={(set) => setReset(set ? 'done' : undefined)} />
          ) : flow ? (
            <Challenge
              flow={flow}
              level={2}
              onCancel={() => {
                flow.close();
                setFlow(undefined);
              }}
            />
          ) : (
            <Identify
              typed={typed}
              onStart={(who) => start(who, () => client().login(who))}
              onPasskey={(begin) => start({}, begin)}
              onProblem={setProblem}
            />
          )}
          <Problem of={problem} />
          {!flow && !over && reset !== 'open' && (
            <>
              <Button
                variant="subtle"
                data-testid="forgot"
                onClick={() => {
                  setProblem(undefined);
                  setReset('open');
                }}
              >
                {t('login.forgot')}
              </Button>
              <Languages onProblem={setProblem} />
            </>
          )}
        </Stack>
      </Card>
    </Center>
  );
}

/**
 * The language menu, for users who cannot read the browser's language. A change of direction rebuilds the page, so the
 * menu is hidden where that would lose a challenge or the screen below.
 */
function Languages({ onProblem }: { onProblem: (problem: unknown) => void }) {
  const { i18n } = useTranslation();
  return (
    <Group justify="center" gap="lg">
      {Object.entries(languages).map(([code, name]) => (
        <Anchor
          key={code}
          component="button"
          type="button"
          size="sm"
          lang={code}
          aria-current={i18n.language === code || undefined}
          underline={i18n.language === code ? 'never' : 'always'}
          onClick={() => void speak(code as Language).then(() => onProblem(undefined), onProblem)}
          data-testid={`login-language-${code}`}
        >
          {name}
        </Anchor>
      ))}
    </Group>
  );
}

interface Who extends Phone {
  email?: string;
  password: string;
}

interface Ways {
  typed: Partial<Who>;
  onStart: (who: Who) => Promise<void>;
  onPasskey: (begin: () => Promise<Flow>) => Promise<void>;
  onProblem: (problem: unknown) => void;
}

/** Offers passkeys in the autofill as long as the form is shown. Returns the button's login, which takes its place. */
function usePasskey({ onPasskey, onProblem }: Ways): () => void {
  const ways = useRef({ onPasskey, onProblem });
  const stop = useRef<() => void>(undefined);
  useEffect(() => {
    ways.current = { onPasskey, onProblem };
  });
  const offered = () => {
    if (!supported()) return;
    stop.current = offer(
      client(),
      (flow) => void ways.current.onPasskey(() => Promise.resolve(flow)),
      (problem) => ways.current.onProblem(problem),
    );
  };
  useEffect(() => {
    offered();
    return () => stop.current?.();
  }, []);
  return () => {
    stop.current?.();
    void ways.current.onPasskey(() => login(client())).finally(offered);
  };
}

function Identify(ways: Ways) {
  const { typed, onStart } = ways;
  const { t } = useTranslation();
  const byPasskey = usePasskey(ways);
  const [busy, setBusy] = useState(false);
  const [way, setWay] = useState<string | null>(typed.phoneNumber ? 'phone' : 'mail');
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        const entry = textsOf(event.currentTarget);
        setBusy(true);
        void onStart(
          way === 'mail'
            ? { email: entry.email, password: entry.password ?? '' }
            : { countryCode: entry.countryCode, phoneNumber: entry.phoneNumber, password: entry.password ?? '' },
        ).finally(() => setBusy(false));
      }}
    >
      <Stack>
        <Tabs value={way} onChange={setWay}>
          <Tabs.List grow>
            <Tabs.Tab value="mail">{t('login.mail')}</Tabs.Tab>
            <Tabs.Tab value="phone">{t('login.phone')}</Tabs.Tab>
          </Tabs.List>
        </Tabs>
        {way === 'mail' ? (
          <TextInput
            name="email"
            type="email"
            defaultValue={typed.email}
            label={t('login.mail')}
            autoComplete="username webauthn"
            required
            dir="ltr"
            data-testid="email"
            autoFocus={!typed.email} // eslint-disable-line jsx-a11y/no-autofocus -- the page is only this form
          />
        ) : (
          <PhoneFields typed={typed} />
        )}
        <PasswordInput
          name="password"
          label={t('login.password')}
          autoComplete="current-password"
          // eslint-disable-next-line jsx-a11y/no-autofocus -- the password is what the next try needs
          autoFocus={!!(typed.email || typed.phoneNumber)}
          required
          data-testid="password"
        />
        <Button type="submit" loading={busy} data-testid="login">
          {t('login.go')}
        </Button>
        {supported() && (
          <Button variant="default" onClick={byPasskey} data-testid="login-passkey">
            {t('login.passkey')}
          </Button>
        )}
      </Stack>
    </form>
  );
}
