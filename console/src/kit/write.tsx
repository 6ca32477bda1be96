/**
 * A write with a form: a button, a drawer with the fields, a preview of the change, and the refusal beside the field
 * that it names. The input stays until the service has accepted it, as a draft also after the form was closed.
 */
import {
  Button,
  Checkbox,
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
import { useEffect, useRef, useState, type ComponentType, type ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import type { paths } from '../api';
import { useAct } from '../app/act';
import type { Body, Writes } from '../app/api';
import { Problem } from '../app/problem';
import { useMay } from '../app/session';
import type { Bounds } from './amount';
import { AmountInput } from './amountinput';
import { useDraft } from './draft';
import { FormDrawer, Restored, useAddressed, useClosing, useShown } from './drawer';
import { labelled, textOf, type Option } from './show';
import { useSure, type Question } from './sure';
import type { TextKey } from '../text/key';

export type { Option } from './show';

type Method = 'post' | 'patch' | 'delete';
type Values = Record<string, unknown>;

/** The props of a component for a field that none of the kinds fits. */
export interface Custom {
  label: string;
  description?: string;
  error?: string;
  value: unknown;
  onChange: (value: unknown) => void;
}

/** A field of a form whose values are of type V; tsc checks its name. */
export type Input<V> = Named<keyof V & string>;

interface Named<N extends string> {
  /** Name of its value: in the request, or in the argument of make. */
  name: N;
  /** Key of its label. */
  title: TextKey;
  /**
   * text is the default. money is an amount, and a test requires this kind for every amount of the interface. number
   * is any other JSON number. list is a list of texts. secret is never shown. file is Base64 of a file (data: a data
   * URL). A list of options is a choice; many: several of them; of: a component of its own.
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
    | { many: readonly (string | Option)[] }
    | { of: ComponentType<Custom> };
  /** Values that a text field suggests; others are possible. */
  hints?: readonly string[];
  required?: boolean;
  /** Key of the help text below the field. */
  help?: TextKey;
  accept?: string;
  /** Currency and decimals of an amount, from the values of the form. */
  bounds?: (values: Values) => Bounds;
  /** Shown only while this is true. */
  when?: (values: Values) => boolean;
}

/** The question that a user confirms before a write. With force, the confirmed write says force: true. */
export interface Asks {
  question: Question;
  force: boolean;
}

/**
 * The values V of the fields are the body. A form with other values declares them as the argument of make:
 * make={(values: Form) => …}. Names of fields, initial values and fixed values are those of V.
 */
export interface WriteProps<M extends Method, P extends Writes<M> & keyof paths, V = Body<P, M>> {
  method: M;
  path: P;
  /** Key of the name of the button and of the form. */
  title: TextKey;
  fields: Input<NoInfer<V>>[];
  /** The initial values of the fields. */
  initial?: Partial<NoInfer<V>>;
  /** Sent with the fields, not shown. */
  fixed?: Partial<NoInfer<V>>;
  places?: Record<string, string>;
  /** Identifies the record that the form edits, if that is neither in fixed nor in places. */
  record?: string | number;
  /** Paths that are read again afterwards. */
  touches?: string[];
  /** Shown above the button: for example, a preview of the change. */
  before?: (values: Partial<NoInfer<V>>) => ReactNode;
  /** Builds the body from the values, if it is more than the fields. */
  make?: (values: V) => Body<P, M>;
  /** Resolves to what is asked before the write, or to nothing. */
  asks?: (body: Body<P, M>) => Promise<Asks | undefined>;
  /** Receives the answer of the service. */
  onDone?: (answer: unknown) => void;
  /** The caller opens and closes the form; there is no button then. */
  opened?: boolean;
  onClose?: () => void;
  button?: ButtonProps;
}

/** The name of a form: its title, and what identifies the record that it edits. */
function nameOf({
  title,
  record,
  places,
  fixed,
}: Pick<WriteProps<Method, never>, 'title' | 'record' | 'places'> & { fixed?: object }) {
  const known = [
    record,
    ...Object.values<unknown>({ ...places }),
    ...Object.values<unknown>({ ...fixed }),
  ] as unknown[];
  return [title, ...known.filter((one) => typeof one === 'string' || typeof one === 'number')].join(':');
}

export function Write<M extends Method, P extends Writes<M> & keyof paths, V = Body<P, M>>(props: WriteProps<M, P, V>) {
  const may = useMay();
  if (!may(`${props.method.toUpperCase()} ${String(props.path)}`)) return null;
  return props.opened === undefined ? <Opens {...props} /> : <Shown {...props} />;
}

/** A button that opens the form. */
function Opens<M extends Method, P extends Writes<M> & keyof paths, V>(props: WriteProps<M, P, V>) {
  const { t } = useTranslation();
  const name = nameOf(props);
  const drawer = useAddressed('form', name);
  return (
    <>
      <Button
        size="xs"
        variant="default"
        {...props.button}
        onClick={drawer.open}
        data-testid={`write-${String(props.path)}`}
      >
        {t(props.title)}
      </Button>
      <FormDrawer opened={drawer.opened} onClose={drawer.close} title={props.title}>
        <Form {...props} key={name} name={name} done={drawer.done} />
      </FormDrawer>
    </>
  );
}

/** The caller opens and closes the form. */
function Shown<M extends Method, P extends Writes<M> & keyof paths, V>(props: WriteProps<M, P, V>) {
  const name = nameOf(props);
  const done = () => props.onClose?.();
  const close = useShown('form', props.opened ? name : undefined, done);
  return (
    <FormDrawer opened={!!props.opened} onClose={close} title={props.title}>
      <Form {...props} key={name} name={name} done={done} />
    </FormDrawer>
  );
}

/** The prefix of the typed text of a field, where that is more than its value: for example, unfinished JSON. */
export const typedIn = '~';
const isTyped = (name: string) => name.startsWith(typedIn);

/** The values of a form. Its fields, initial and fixed values have the names of V. */
const as = <V,>(values: unknown) => values as V;

function Form<M extends Method, P extends Writes<M> & keyof paths, V>(
  props: WriteProps<M, P, V> & { name: string; done: () => void },
) {
  const { t } = useTranslation();
  const act = useAct(props.method, props.path, props.touches, undefined, props.title);
  const fields: Input<Values>[] = props.fields;
  const secret = fields.filter((f) => f.kind === 'secret' || f.kind === 'file' || f.kind === 'data');
  const draft = useDraft<Values>(props.name, { ...props.initial }, (name) => secret.some((f) => f.name === name));
  const close = useClosing(draft);
  const sure = useSure();
  const [asking, setAsking] = useState(false);
  const values = Object.fromEntries(Object.entries(draft.value).filter(([name]) => !isTyped(name)));
  const shown = fields.filter((f) => f.when?.(values) ?? true);
  const wrong = (name: string) =>
    act.problem?.errors.find((e) => e.field === name || e.field.endsWith(`.${name}`))?.message;
  const missing = shown.some((f) => f.required && (values[f.name] === undefined || values[f.name] === ''));
  async function send() {
    const filled = Object.fromEntries(
      shown.map((f): [string, unknown] => [f.name, values[f.name]]).filter(([, v]) => v !== undefined && v !== ''),
    );
    const all = { ...props.fixed, ...filled };
    const body = props.make ? props.make(as<V>(all)) : as<Body<P, M>>(all);
    setAsking(!!props.asks);
    const asks = await props.asks?.(body).finally(() => setAsking(false));
    if (asks && !(await sure.ask(asks.question))) return;
    const sent = asks?.force ? as<Body<P, M>>({ ...(body as unknown as object), force: true }) : body;
    const answer = await act.run(sent, props.places);
    if (answer === undefined) return;
    draft.done();
    props.onDone?.(answer);
    props.done();
  }
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <Stack>
        <Restored of={draft} />
        {shown.map((f, n) => (
          <Field
            key={`${f.name} ${draft.round}`}
            first={n === 0}
            field={f}
            value={values[f.name]}
            error={wrong(f.name)}
            bounds={f.bounds?.(values)}
            typed={draft.value[typedIn + f.name] as string | undefined}
            onTyped={(text) => draft.set({ [typedIn + f.name]: text })}
            onChange={(v) => draft.set({ [f.name]: v })}
          />
        ))}
        {props.before?.(as<Partial<V>>(values))}
        <Problem of={act.problem} />
        <Group justify="flex-end">
          <Button variant="default" onClick={close}>
            {t('cancel')}
          </Button>
          <Button
            type="submit"
            color={props.button?.color}
            loading={act.busy || asking}
            disabled={missing}
            data-testid="send"
          >
            {t(props.title)}
          </Button>
        </Group>
      </Stack>
      {act.view}
      {sure.view}
    </form>
  );
}

export function Field({
  field,
  value,
  error,
  bounds,
  typed,
  onTyped,
  onChange,
  first,
}: {
  field: Input<Values>;
  value: unknown;
  error?: string;
  bounds?: Bounds;
  /** Focused when the form opens. */
  first?: boolean;
  /** The typed text that is more than the value, as onTyped received it. */
  typed?: string;
  onTyped?: (text: string | undefined) => void;
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
  const type = (event: { currentTarget: { value: string } }) => onChange(event.currentTarget.value);
  // The text is kept only where it is not the value.
  const kept = onTyped && { typed, onTyped };
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
  if (typeof kind === 'object' && 'of' in kind) {
    const { label, description } = common;
    return <kind.of {...{ label, description, error, value, onChange }} />;
  }
  switch (kind) {
    case 'area':
      return <Textarea {...common} autosize minRows={3} maxRows={14} value={text} onChange={type} />;
    case 'secret':
      return <PasswordInput {...common} autoComplete="off" value={text} onChange={type} />;
    case 'json':
      return <JSONInput common={common} value={value} typed={typed} onTyped={onTyped} onChange={onChange} />;
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
      return (
        <TagsInput
          {...common}
          value={(value as string[]) ?? []}
          {...(onTyped ? { searchValue: typed ?? '', onSearchChange: onTyped } : {})}
          onChange={onChange}
        />
      );
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
          {...kept}
          value={text}
          onChange={(typed) => onChange(typed === '' ? undefined : JSON.parse(typed))}
        />
      );
    case 'money':
      return <AmountInput {...common} {...bounds} {...kept} value={text} onChange={onChange} />;
    default:
      return (
        <>
          <TextInput
            {...common}
            type={kind === 'date' ? 'date' : 'text'}
            value={text}
            onChange={type}
            list={field.hints && `hints-${name}`}
          />
          {field.hints && (
            <datalist id={`hints-${name}`}>
              {field.hints.map((hint) => (
                <option key={hint} value={hint} />
              ))}
            </datalist>
          )}
        </>
      );
  }
}

/** A count, a time or an id: a whole number that JavaScript represents exactly. */
const count = { decimals: 0, digits: 15, signed: true, quiet: true };

function JSONInput({
  common,
  value,
  typed,
  onTyped,
  onChange,
}: {
  common: object;
  value: unknown;
  typed?: string;
  onTyped?: (text: string | undefined) => void;
  onChange: (value: unknown) => void;
}) {
  const [text, setText] = useState(() => typed ?? (value === undefined ? '' : JSON.stringify(value, null, 2)));
  const [bad, setBad] = useState(() => (typed === undefined ? '' : faultOf(typed)));
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => field.current?.setCustomValidity(bad), [bad]);
  const type = (next: string) => {
    const fault = faultOf(next);
    setText(next);
    setBad(fault);
    onTyped?.(fault ? next : undefined);
    if (!fault) onChange(next.trim() ? JSON.parse(next) : undefined);
  };
  return (
    <Textarea
      {...common}
      ref={field}
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

/** The fault of a text as JSON; '' if it has none. */
function faultOf(text: string): string {
  try {
    if (text.trim()) JSON.parse(text);
    return '';
  } catch (error) {
    return String(error instanceof Error ? error.message : error);
  }
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
