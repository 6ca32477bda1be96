/**
 * The field for every number that an operator types. It keeps each character, shows the value that it will send, and
 * requires a choice where a text has two possible values.
 */
import { Button, Group, TextInput } from '@mantine/core';
import { useDidUpdate } from '@mantine/hooks';
import { useEffect, useRef, useState, type ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { check, grouped, read, type Bounds, type Fault } from './amount';

interface Props extends Bounds {
  label: string;
  /** Plain notation, as the service writes it; '' for no value. */
  value: string;
  /** Receives plain notation, or '' while the text is not a number within the bounds. The form cannot be sent then. */
  onChange: (value: string) => void;
  /** The typed text that the form kept, if it is not the value. */
  typed?: string;
  /** Receives the typed text while it is not the value; otherwise undefined. */
  onTyped?: (text: string | undefined) => void;
  /** Shows the line below only if the text differs from the value. For counts. */
  quiet?: boolean;
  description?: ReactNode;
  error?: string;
  name?: string;
  required?: boolean;
  disabled?: boolean;
  'data-testid'?: string;
  'data-autofocus'?: boolean;
}

/** A text, and the value that the operator chose for it or that the form started with. */
interface Choice {
  text: string;
  value: string;
}

/** The reading of a text. A choice for this text resolves it. */
function judge(text: string, choice: Choice | undefined, bounds: Bounds) {
  if (choice?.text !== text) return read(text, bounds);
  return check(choice.value, bounds) ?? { value: choice.value };
}

export function AmountInput({
  value,
  onChange,
  typed,
  onTyped,
  quiet,
  description,
  error,
  unit,
  decimals,
  digits,
  signed,
  ...rest
}: Props) {
  const { t } = useTranslation();
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState(typed ?? value);
  const [choice, setChoice] = useState<Choice | undefined>(
    typed !== undefined && value === '' ? undefined : { text: typed ?? value, value },
  );
  const [known, setKnown] = useState(value);
  if (value !== known) {
    // The form changed the value, not the user.
    setKnown(value);
    setText(value);
    setChoice({ text: value, value });
  }
  const bounds = { unit, decimals, digits, signed };
  const give = (next: string, chosen?: Choice) => {
    const judged = judge(next, chosen, bounds);
    const given = 'value' in judged ? judged.value : '';
    setText(next);
    setChoice(chosen);
    setKnown(given);
    if (given !== value) onChange(given);
    onTyped?.(next === given ? undefined : next);
  };
  useDidUpdate(() => give(text, choice), [unit, decimals]); // the bounds of another currency differ
  const reading = judge(text, choice, bounds);
  const fault = 'fault' in reading ? faultText(reading) : undefined;
  function faultText(of: Fault): string {
    const count = of.fault === 'decimals' ? (decimals ?? 18) : (digits ?? 18);
    if (of.fault === 'decimals' && count === 0) return t('amount.whole');
    const sign = of.fault === 'character' ? of.of : '';
    return t(`amount.${of.fault}`, { count, sign, unit: unit || t('amount.any') });
  }
  const unclear = 'values' in reading ? t('amount.unclear', { text: text.trim() }) : undefined;
  useEffect(() => input.current?.setCustomValidity(fault ?? unclear ?? ''), [fault, unclear]);
  const shown = 'value' in reading && reading.value !== '';
  return (
    <TextInput
      {...rest}
      ref={input}
      value={text}
      inputMode={signed || decimals === 0 ? 'numeric' : 'decimal'}
      dir="ltr"
      autoComplete="off"
      spellCheck={false}
      error={error ?? fault !== undefined}
      aria-invalid={!!(error ?? fault ?? unclear)}
      inputWrapperOrder={['label', 'input', 'description', 'error']}
      descriptionProps={{ component: 'div' }}
      description={
        <>
          {description}
          <div className="reads" data-quiet={quiet || undefined} aria-live="polite" data-fault={fault && true}>
            {fault ??
              (unclear && t('amount.mean')) ??
              (shown && (!quiet || reading.value !== text) ? (
                <>
                  {t('amount.sends')} <Plain of={reading.value} unit={unit} testid={`${rest['data-testid']}-sends`} />
                </>
              ) : (
                !quiet && t('amount.hint')
              ))}
            {'values' in reading && (
              <Group gap={6} component="span" display="inline-flex">
                {reading.values.map((one) => (
                  <Button
                    key={one}
                    size="compact-xs"
                    variant="light"
                    data-testid={`${rest['data-testid']}-means`}
                    data-value={one}
                    onClick={() => {
                      give(text, { text, value: one });
                      input.current?.focus();
                    }}
                  >
                    <Plain of={one} unit={unit} />
                  </Button>
                ))}
              </Group>
            )}
          </div>
        </>
      }
      onChange={(event) => give(event.currentTarget.value)}
    />
  );
}

/** A value with its currency, in an unambiguous notation. */
function Plain({ of, unit, testid }: { of: string; unit?: string; testid?: string }) {
  const { i18n } = useTranslation();
  const [whole, decimals] = grouped(of, i18n.language);
  return (
    <bdi dir="ltr" className="money" data-testid={testid} data-value={of}>
      {whole}
      <span className="decimals">{decimals}</span>
      {unit ? ` ${unit}` : ''}
    </bdi>
  );
}
