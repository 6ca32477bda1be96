/** Asks before a write that takes access away. If it takes much, a word must be typed, so that no habit confirms it. */
import { Alert, Button, Group, Modal, Stack, Text, TextInput } from '@mantine/core';
import { useRef, useState, type ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import type { TextKey } from '../text/key';

export interface Question {
  /** Keys of the title and of the button. */
  title: TextKey;
  /** The effects, in sentences. */
  lines: string[];
  /** The word to type; without it, one press confirms. */
  word?: string;
}

export interface Sure {
  /** Resolves to whether the user confirmed. */
  ask: (question: Question) => Promise<boolean>;
  /** Render it on the screen. */
  view: ReactNode;
}

export function useSure(): Sure {
  const { t } = useTranslation();
  const [asked, setAsked] = useState<Question>();
  const answer = useRef<(sure: boolean) => void>(undefined);
  const ask = (question: Question) =>
    new Promise<boolean>((resolve) => {
      answer.current = (sure) => {
        setAsked(undefined);
        resolve(sure);
      };
      setAsked(question);
    });
  const view = (
    <Modal opened={!!asked} onClose={() => answer.current?.(false)} title={asked && t(asked.title)} centered>
      {asked && <Asked of={asked} onAnswer={(sure) => answer.current?.(sure)} />}
    </Modal>
  );
  return { ask, view };
}

function Asked({ of: { title, lines, word }, onAnswer }: { of: Question; onAnswer: (sure: boolean) => void }) {
  const { t } = useTranslation();
  const [typed, setTyped] = useState('');
  const ready = !word || typed.trim() === word;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        event.stopPropagation(); // the form behind the dialog is its parent in React
        if (ready) onAnswer(true);
      }}
    >
      <Stack data-testid="sure">
        <Alert color={word ? 'red' : 'yellow'} aria-live="polite">
          {lines.map((line) => (
            <Text key={line} size="sm">
              {line}
            </Text>
          ))}
        </Alert>
        {word && (
          <TextInput
            label={t('sure.type', { word })}
            value={typed}
            onChange={(event) => setTyped(event.currentTarget.value)}
            autoComplete="off"
            dir="ltr"
            data-autofocus
            data-testid="sure-word"
          />
        )}
        <Group justify="flex-end">
          <Button variant="default" onClick={() => onAnswer(false)} data-testid="sure-cancel">
            {t('cancel')}
          </Button>
          <Button type="submit" color="red" disabled={!ready} data-testid="sure-go">
            {t(title)}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
