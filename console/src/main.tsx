/** The console starts here: trust, tabs, texts, then the login. The rest is loaded when somebody is logged in. */
import '@mantine/core/styles.css';
import './app/style.css';
import { createTheme, DirectionProvider, Loader, MantineProvider } from '@mantine/core';
import { lazy, Suspense } from 'react';
import { createRoot } from 'react-dom/client';
import { useTranslation } from 'react-i18next';
import { isRTL, startTexts } from './app/i18n';
import { Login } from './app/login';
import { nonce, trust, worker } from './app/page';
import { shareTabs, useSession } from './app/session';

const theme = createTheme({ primaryColor: 'indigo', defaultRadius: 'sm', cursorType: 'pointer' });
const Screens = lazy(() => import('./app/app'));

function Console() {
  const { i18n } = useTranslation();
  const { token, over } = useSession();
  return (
    <DirectionProvider key={i18n.language} initialDirection={isRTL(i18n.language) ? 'rtl' : 'ltr'} detectDirection={false}>
      <MantineProvider theme={theme} defaultColorScheme="auto" getStyleNonce={() => nonce}>
        {token || over ? <Suspense fallback={<Loader />}><Screens /></Suspense> : <Login onDone={() => undefined} />}
      </MantineProvider>
    </DirectionProvider>
  );
}

trust();
await Promise.all([shareTabs(worker), startTexts()]);
createRoot(document.getElementById('console')!).render(<Console />);
