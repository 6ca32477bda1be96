/** The decision on a case, in at most three keys: 1 and Enter, or 2, the number of a reason, and Enter. */
import { Alert, Anchor, Button, Checkbox, Chip, Group, Kbd, Stack, Text, TextInput } from '@mantine/core';
import { IconAlertTriangle } from '@tabler/icons-react';
import { Link } from '@tanstack/react-router';
import { useId, useRef, useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { Body } from '../../app/api';
import type { languages } from '../../app/i18n';
import { Problem } from '../../app/problem';
import { useMay } from '../../app/session';
import { script } from '../../app/script';
import { useDraft } from '../../kit/draft';
import { useKeys } from '../../kit/keys';

export type Sent = Pick<Body<'/user/update-kyc', 'post'>, 'kycConfirm' | 'rejectedResult' | 'rejectedResultJson'>;

const verdicts = ['manuelApproved', 'rejected', 'ocrOrNfcApproved'] as const;
export const reasons = ['blurred', 'cut', 'expired', 'name', 'face', 'wrong', 'forged', 'missing'] as const;
/** The last number is a free text. */
const own = reasons.length;

const words: Record<keyof typeof languages, () => Promise<{ default: Record<string, string> }>> = {
  tr: () => import('../../text/tr'),
  en: () => import('../../text/en'),
  ar: () => import('../../text/ar'),
};

/** A reason in every language, so that the customer can read it. */
async function inAll(key: string): Promise<Record<string, string>> {
  return Object.fromEntries(
    await Promise.all(
      Object.entries(words).map(
        async ([language, load]) => [language, (await script(load)).default[key] ?? ''] as const,
      ),
    ),
  );
}

/** The name of the draft of a case. */
export const reasonOf = (userId: string) => `kyc.reason:${userId}`;

export function Decide({
  of,
  disabled,
  why,
  aml,
  onDecide,
}: {
  /** The user of the case. */
  of: string;
  disabled: boolean;
  why?: string;
  /** The AML status, if it is a finding: an approval then needs a confirmation. */
  aml?: string;
  onDecide: (sent: Sent) => void;
}) {
  const { t } = useTranslation();
  const [verdict, setVerdict] = useState<(typeof verdicts)[number]>();
  const [reason, setReason] = useState<number>();
  // The own reason stays until the decision was accepted, so that it is there again after an undo.
  const draft = useDraft(reasonOf(of), { text: '' });
  const { text } = draft.value;
  const [problem, setProblem] = useState<unknown>(); // the texts of a reason could not be loaded
  const [sure, setSure] = useState(false); // the AML findings were reviewed
  const field = useRef<HTMLInputElement>(null);
  const heading = useId();
  const said = reason !== undefined && (reason < own || text.trim() !== '');
  const risky = aml !== undefined && verdict !== undefined && verdict !== 'rejected';
  const ready = !disabled && (!risky || sure) && verdict !== undefined && (verdict !== 'rejected' || said);
  const choose = (n: number) => {
    if (disabled) return;
    setVerdict(verdicts[n]);
    setReason(undefined);
    setSure(false);
  };
  const because = (n: number) => {
    setReason(n);
    if (n === own) setTimeout(() => field.current?.focus());
  };
  async function confirm() {
    if (!ready || !verdict) return;
    if (verdict !== 'rejected') onDecide({ kycConfirm: verdict });
    else if (reason === own) onDecide({ kycConfirm: verdict, rejectedResult: text.trim() });
    else {
      const key = `kyc.reason.${reasons[reason!]!}` as const;
      setProblem(undefined);
      await inAll(key).then(
        (all) => onDecide({ kycConfirm: verdict, rejectedResult: t(key), rejectedResultJson: all }),
        setProblem,
      );
    }
  }
  const numbers =
    verdict === 'rejected'
      ? Object.fromEntries(Array.from({ length: own + 1 }, (_, n) => [String(n + 1), () => because(n)]))
      : Object.fromEntries(verdicts.map((_, n) => [String(n + 1), () => choose(n)]));
  useKeys({
    ...numbers,
    ...(risky ? { a: () => setSure(true) } : {}),
    Enter: () => void confirm(),
    Escape: () => {
      setVerdict(undefined);
      setReason(undefined);
    },
  });
  return (
    <Stack gap="xs" className="kyc-decide" data-testid="kyc-decision" data-verdict={verdict}>
      {why && <Alert color="gray">{why}</Alert>}
      <Group gap="xs" className="verdicts">
        {verdicts.map((v, n) => (
          <Button
            key={v}
            size="xs"
            variant={verdict === v ? 'filled' : 'default'}
            aria-pressed={verdict === v}
            disabled={disabled}
            leftSection={<Kbd size="xs">{n + 1}</Kbd>}
            onClick={() => choose(n)}
            data-testid={`verdict-${v}`}
          >
            {t(`kyc.do.${v}`)}
          </Button>
        ))}
      </Group>
      {verdict === 'rejected' && (
        <Stack gap="xs">
          <Text size="sm" fw={600} id={heading}>
            {t('kyc.why')}
          </Text>
          <Chip.Group value={reason === undefined ? null : String(reason)} onChange={(v) => because(verdictNumber(v))}>
            <Group gap="xs" role="radiogroup" aria-labelledby={heading}>
              {[...reasons, 'own' as const].map((r, n) => (
                <Chip key={r} value={String(n)} size="xs" data-testid={`reason-${r}`}>
                  {n + 1} · {t(`kyc.reason.${r}`)}
                </Chip>
              ))}
            </Group>
          </Chip.Group>
          {reason === own && (
            <TextInput
              ref={field}
              label={t('kyc.reason.text')}
              value={text}
              maxLength={2000}
              data-testid="reason-text"
              onChange={(event) => draft.set({ text: event.currentTarget.value })}
              onKeyDown={(event) => {
                if (event.key === 'Enter') void confirm();
              }}
            />
          )}
        </Stack>
      )}
      {risky && (
        <Checkbox
          size="sm"
          checked={sure}
          label={t('kyc.aml.sure')}
          data-testid="aml-sure"
          onChange={(event) => setSure(event.currentTarget.checked)}
        />
      )}
      <Problem of={problem} />
      <Group className="confirm">
        <Button
          size="sm"
          disabled={!ready}
          onClick={() => void confirm()}
          rightSection={<Kbd size="xs">Enter</Kbd>}
          data-testid="confirm"
        >
          {t('kyc.confirm')}
        </Button>
      </Group>
    </Stack>
  );
}

/** The warning about a finding, above the case, in sight before anything is decided. */
export function Findings({ aml }: { aml: string }) {
  const { t } = useTranslation();
  const may = useMay();
  return (
    <Alert color="red" icon={<IconAlertTriangle size={16} aria-hidden />} py="xs" data-testid="aml-warning">
      {t('kyc.aml.warn', { state: t(`state.${aml}`, { defaultValue: aml }) })}{' '}
      {may('GET /admin/user/get-users-without-aml-confirmed') && (
        <Anchor component={Link} to="/aml" size="sm" underline="always">
          {t('kyc.aml.open')}
        </Anchor>
      )}
    </Alert>
  );
}

/** An index in the list of reasons; chips have texts for values. */
function verdictNumber(value: unknown): number {
  return Array.from({ length: own + 1 }, (_, n) => String(n)).indexOf(String(value));
}
