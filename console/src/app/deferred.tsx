/** A part of the console whose script is loaded when it is first shown. */
import { Button, Loader, Stack } from '@mantine/core';
import { useEffect, useState, type ComponentType, type ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { Problem } from './problem';
import { script } from './script';

/**
 * The component once its script is loaded, and `waiting` until then. After a failure it shows the problem in its place
 * with a retry button. Nothing else on the page changes.
 */
export function deferred<P extends object>(load: () => Promise<{ default: ComponentType<P> }>, waiting?: ReactNode) {
  let Loaded: ComponentType<P> | undefined;
  const preload = async () => {
    Loaded ??= (await script(load)).default;
  };
  function Deferred(props: P) {
    const { t } = useTranslation();
    const [, redraw] = useState(0);
    const [problem, setProblem] = useState<unknown>();
    const get = () =>
      preload().then(
        () => redraw((n) => n + 1),
        (error: unknown) => setProblem(error),
      );
    useEffect(() => {
      if (!Loaded) void get();
    }, []);
    if (Loaded) return <Loaded {...props} />;
    if (problem) return <Again of={problem} onClick={get} />;
    return waiting ?? <Loader aria-label={t('loading')} />;
  }
  return Object.assign(Deferred, { preload: () => preload().catch(() => undefined) });
}

/** The problem in the place of a part, with a retry button. */
export function Again({ of, onClick }: { of: unknown; onClick: () => unknown }) {
  const { t } = useTranslation();
  const [busy, setBusy] = useState(false);
  return (
    <Stack align="start">
      <Problem of={of} />
      <Button
        variant="default"
        loading={busy}
        data-testid="again"
        onClick={() => {
          setBusy(true);
          void Promise.resolve(onClick()).finally(() => setBusy(false));
        }}
      >
        {t('again')}
      </Button>
    </Stack>
  );
}
