/**
 * A write with a form: a button, a drawer with the fields, a preview of the change, and the refusal beside the field
 * that it names. The input stays until the service has accepted it.
 */
import {
  Button,
  Checkbox,
  Drawer,
  FileInput,
  Group,
  MultiSelect,
  PasswordInput,
  Select,
  Stack,
  TagsInput,
  Textarea,
  TextInput,
  type ButtonProps,
} from '@mantine/core';
import { useState, type ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import type { paths } from '../api';
import { useAct } from '../app/act';
import type { Body, Writes } from '../app/api';
import { Problem } from '../app/problem';
import { useMay } from '../app/session';
import type { Bounds } from './amount';
import { AmountInput } from './amountinput';
import { labelled, textOf, type Option } from './show';

export type { Option } from './show';

type Method = 'post' | 'patch' | 'delete';
type Values = Record<string, unknown>;

export interface Input<B> {
  /** Name of the field in the request, checked by tsc. */
  name: keyof B & string;
  /** Key of its label. */
  title: string;
  /**
   * text is the default. money is an amount, and a test requires this kind for every amount of the interface. number
   * is any other JSON number. list is a list of texts. secret is never shown. file is Base64 of a file (data: a data
   * URL). A list of options is a choice; many: several of them.
   */
  kind?:
    | 'text'
    | 'area'
    | 'secret'
    | 'money'
    | 'number'
    | 'flag'
    | 'date'
    | 'list'
    | 'file'
    | 'data'
    | 'json'
    | readonly (string | Option)[]
    | { many: readonly (string | Option)[] };
  required?: boolean;
  /** Key of the help text below the field. */
  help?: string;
  accept?: string;
  /** Currency and decimals of an amount, from the values of the form. */
  bounds?: (values: Values) => Bounds;
  /** Shown only while this is true. */
  when?: (values: Values) => boolean;
}

export interface WriteProps<M extends Method, P extends Writes<M> & keyof paths> {
  method: M;
  path: P;
  /** Key of the name of the button and of the form. */
  title: string;
  fields: Input<Body<P, M>>[];
  /** The initial values of the fields. */
  initial?: Partial<Body<P, M>>;
  /** Sent with the fields, not shown. */
  fixed?: Partial<Body<P, M>>;
  places?: Record<string, string>;
  /** Paths that are read again afterwards. */
  touches?: string[];
  /** Shown above the button: for example, a preview of the change. */
  before?: (values: Values) => ReactNode;
  /** Builds the body from the values, if it is more than the fields. */
  make?: (values: Values) => Body<P, M>;
  /** Receives the answer of the service. */
  onDone?: (answer: unknown) => void;
  /** The caller opens and closes the form; there is no button then. */
  opened?: boolean;
  onClose?: () => void;
  button?: ButtonProps;
}

export function Write<M extends Method, P extends Writes<M> & keyof paths>(props: WriteProps<M, P>) {
  const { t } = useTranslation();
  const may = useMay();
  const [open, setOpen] = useState(false);
  if (!may(`${props.method.toUpperCase()} ${String(props.path)}`)) return null;
  const close = () => {
    setOpen(false);
    props.onClose?.();
  };
  return (
    <>
      {props.opened === undefined && (
        <Button
          size="xs"
          variant="default"
          {...props.button}
          onClick={() => setOpen(true)}
          data-testid={`write-${String(props.path)}`}
        >
          {t(props.title)}
        </Button>
      )}
      <Drawer opened={props.opened ?? open} onClose={close} title={t(props.title)} position="right" size="lg">
        <Form {...props} close={close} />
      </Drawer>
    </>
  );
}

function Form<M extends Method, P extends Writes<M> & keyof paths>(props: WriteProps<M, P> & { close: () => void }) {
  const { t } = useTranslation();
  const act = useAct(props.method, props.path, props.touches ?? []);
  const [values, setValues] = useState<Values>(() => ({ ...props.initial }));
  const shown = props.fields.filter((f) => f.when?.(values) ?? true);
  const wrong = (name: string) =>
    act.problem?.errors.find((e) => e.field === name || e.field.endsWith(`.${name}`))?.message;
  const missing = shown.some((f) => f.required && (values[f.name] === undefined || values[f.name] === ''));
  async function send() {
    const sent = Object.fromEntries(
      shown.map((f): [string, unknown] => [f.name, values[f.name]]).filter(([, v]) => v !== undefined && v !== ''),
    );
    const body = props.make
      ? props.make({ ...props.fixed, ...sent })
      : ({ ...props.fixed, ...sent } as unknown as Body<P, M>);
    const answer = await act.run(body as never, props.places);
    if (answer === undefined) return;
    props.onDone?.(answer);
    props.close();
  }
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <Stack>
        {shown.map((f, n) => (
          <Field
            key={f.name}
            first={n === 0}
            field={f as unknown as Input<Values>}
            value={values[f.name]}
            error={wrong(f.name)}
            bounds={f.bounds?.(values)}
            onChange={(v) => setValues((old) => ({ ...old, [f.name]: v }))}
          />
        ))}
        {props.before?.(values)}
        <Problem of={act.problem} />
        <Group justify="flex-end">
          <Button variant="default" onClick={props.close}>
            {t('cancel')}
          </Button>
          <Button type="submit" color={props.button?.color} loading={act.busy} disabled={missing} data-testid="send">
            {t(props.title)}
          </Button>
        </Group>
      </Stack>
      {act.view}
    </form>
  );
}

export function Field({
  field,
  value,
  error,
  bounds,
  onChange,
  first,
}: {
  field: Input<Values>;
  value: unknown;
  error?: string;
  bounds?: Bounds;
  /** Focused when the form opens. */
  first?: boolean;
  onChange: (value: unknown) => void;
}) {
  const { t } = useTranslation();
  const { name, kind = 'text', required = false } = field;
  const common = {
    label: t(field.title),
    error,
    required,
    name,
    'data-testid': `field-${name}`,
    'data-autofocus': first || undefined,
    description: field.help ? t(field.help) : undefined,
  };
  const text = textOf(value);
  const typed = (event: { currentTarget: { value: string } }) => onChange(event.currentTarget.value);
  if (Array.isArray(kind)) {
    return (
      <Select
        {...common}
        data={labelled(kind, t)}
        value={text || null}
        clearable={!required}
        searchable
        selectFirstOptionOnChange // Enter takes the first match, and does not send the previous choice
        onChange={(v) => onChange(v ?? undefined)}
      />
    );
  }
  if (typeof kind === 'object' && 'many' in kind) {
    return (
      <MultiSelect
        {...common}
        data={labelled(kind.many, t)}
        value={(value as string[]) ?? []}
        searchable
        clearable
        onChange={onChange}
      />
    );
  }
  switch (kind) {
    case 'area':
      return <Textarea {...common} autosize minRows={3} maxRows={14} value={text} onChange={typed} />;
    case 'secret':
      return <PasswordInput {...common} autoComplete="off" value={text} onChange={typed} />;
    case 'json':
      return <JSONInput common={common} value={value} onChange={onChange} />;
    case 'flag':
      return (
        <Checkbox
          label={common.label}
          description={common.description}
          error={error}
          name={name}
          checked={value === true}
          onChange={(event) => onChange(event.currentTarget.checked)}
          data-testid={common['data-testid']}
        />
      );
    case 'list':
      return <TagsInput {...common} value={(value as string[]) ?? []} onChange={onChange} />;
    case 'file':
    case 'data':
      return (
        <FileInput
          {...common}
          accept={field.accept}
          clearable
          clearButtonProps={{ 'aria-label': t('list.clear') }}
          onChange={(file) => {
            void (file ? encoded(file, kind === 'data').then(onChange) : onChange(undefined));
          }}
        />
      );
    case 'number':
      return (
        <AmountInput
          {...common}
          {...count}
          value={text}
          onChange={(typed) => onChange(typed === '' ? undefined : JSON.parse(typed))}
        />
      );
    case 'money':
      return <AmountInput {...common} {...bounds} value={text} onChange={onChange} />;
    default:
      return <TextInput {...common} type={kind === 'date' ? 'date' : 'text'} value={text} onChange={typed} />;
  }
}

/** A count, a time or an id: a whole number that JavaScript represents exactly. */
const count = { decimals: 0, digits: 15, signed: true, quiet: true };

function JSONInput({
  common,
  value,
  onChange,
}: {
  common: object;
  value: unknown;
  onChange: (value: unknown) => void;
}) {
  const [text, setText] = useState(() => (value === undefined ? '' : JSON.stringify(value, null, 2)));
  const [bad, setBad] = useState('');
  const type = (typed: string) => {
    setText(typed);
    try {
      onChange(typed.trim() ? JSON.parse(typed) : undefined);
      setBad('');
    } catch (error) {
      setBad(String(error instanceof Error ? error.message : error));
    }
  };
  return (
    <Textarea
      {...common}
      autosize
      minRows={4}
      maxRows={24}
      dir="ltr"
      value={text}
      styles={{ input: { fontFamily: 'monospace' } }}
      error={bad || (common as { error?: string }).error}
      onChange={(event) => type(event.currentTarget.value)}
    />
  );
}

/** Base64 of a file, or its data URL. */
export function encoded(file: Blob, url = false): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => {
      const address = textOf(reader.result);
      resolve(url ? address : address.replace(/^[^,]*,/, ''));
    };
    reader.onerror = () => reject(reader.error ?? new Error('unreadable'));
    reader.readAsDataURL(file);
  });
}
