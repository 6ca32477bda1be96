/** The entry point: trusted types, tabs, texts, then the login. Everything else is loaded after the login. */
import '@mantine/core/styles.css';
import './app/style.css';
import { DirectionProvider, MantineProvider } from '@mantine/core';
import { useMemo } from 'react';
import { createRoot } from 'react-dom/client';
import { useTranslation } from 'react-i18next';
import { deferred } from './app/deferred';
import { keepFocus } from './app/focus';
import { isRTL, startTexts } from './app/i18n';
import { Login } from './app/login/login';
import { nonce, trust, worker } from './app/page';
import { keepSession, resume } from './app/login/renewal';
import { shareTabs, useSession } from './app/session';
import { theme } from './app/frame/theme';

const Screens = deferred(() => import('./app/app'));

function Console() {
  const { i18n, t } = useTranslation();
  const { token, userId, over } = useSession();
  const look = useMemo(() => theme(t('close')), [t]);
  const direction = isRTL(i18n.language) ? 'rtl' : 'ltr';
  return (
    <DirectionProvider key={direction} initialDirection={direction} detectDirection={false}>
      <MantineProvider theme={look} defaultColorScheme="auto" getStyleNonce={() => nonce}>
        {token || over ? <Screens key={userId} /> : <Login onDone={() => undefined} />}
      </MantineProvider>
    </DirectionProvider>
  );
}

trust();
keepFocus();
await Promise.all([shareTabs(worker).then(resume), startTexts()]);
keepSession();
createRoot(document.getElementById('console')!).render(<Console />);
