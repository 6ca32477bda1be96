/** Mailings: notifications by topic, and SMS. Each is a job; the recipients are shown before it starts. */
import { Alert, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { textOf } from '../kit/show';
import { languages } from '../app/i18n';
import { useMay } from '../app/session';
import { useRead } from '../kit/read';
import { Write, type Input } from '../kit/write';
import { JobScreen, said, useJob } from '../kit/sheets';
import { Audience, Channels, Letter, Length } from './audience';

const notify = '/admin/send-notification';
const sms = '/send-bulk-sms';
const parameters = '/admin/get-parameters';
const touches = ['/admin/jobs'];
const spoken = Object.entries(languages).map(([value, label]) => ({ value, label }));

/** The object of a parameter, for users who may read parameters. */
function useParameter<T>(code: string): T | undefined {
  const may = useMay();
  return useRead(parameters, { code }, { enabled: may(`GET ${parameters}`) }).data?.[0]?.json as T | undefined;
}

/** The answer of the service: the number of recipients, and the unknown ids. */
interface Started {
  id: string;
  count: number;
  unknown?: string[];
}

export default function Mailings() {
  const [, follow] = useJob();
  const [started, setStarted] = useState<Started>();
  const onDone = (answer: unknown) => {
    const of = said<Started>(answer);
    setStarted(of);
    follow(of.id);
  };
  return (
    <JobScreen
      title="mailing.title"
      empty="mailing.none"
      unlisted="mailing.sendOnly"
      next={{ title: 'mailing.notify', form: 'mailing.notify', needs: `POST ${notify}` }}
      kinds={['send-notification', 'send-bulk-sms', 'terms-of-service']}
      actions={
        <>
          <Notification onDone={onDone} />
          <SMS onDone={onDone} />
        </>
      }
    >
      {(job) => started?.id === job && <Begun of={started} />}
    </JobScreen>
  );
}

function Begun({ of }: { of: Started }) {
  const { t } = useTranslation();
  return (
    <Alert color={of.unknown?.length ? 'yellow' : 'green'} data-testid="started">
      <Text size="sm">{t('mailing.started', { count: of.count })}</Text>
      {!!of.unknown?.length && (
        <Text size="sm">
          {t('mailing.unknown')} <bdi dir="ltr">{of.unknown.join(', ')}</bdi>
        </Text>
      )}
    </Alert>
  );
}

/** Pasted ids, separated by lines, commas or spaces, each once. */
export function ids(value: unknown): string[] {
  const all = ((value as string[] | undefined) ?? []).flatMap((text) => text.split(/[\s,;]+/));
  return [...new Set(all.filter(Boolean))];
}

function Notification({ onDone }: { onDone: (answer: unknown) => void }) {
  const topics = useParameter<{ topics?: Record<string, string[]>; other?: string[] }>('NOTIFICATION_TOPICS');
  return (
    <Write
      method="post"
      path={notify}
      title="mailing.notify"
      touches={touches}
      button={{ variant: 'filled' }}
      fields={[
        { name: 'memberId', title: 'mailing.accounts', kind: 'list', required: true, help: 'mailing.accountsHelp' },
        {
          name: 'topic',
          title: 'mailing.topic',
          required: true,
          help: 'mailing.topicHelp',
          hints: Object.keys(topics?.topics ?? {}),
        },
        { name: 'title', title: 'mailing.subject', required: true },
        { name: 'body', title: 'mailing.body', kind: 'area', required: true },
        { name: 'language', title: 'mailing.language', kind: spoken },
        { name: 'imageUrl', title: 'mailing.image' },
        { name: 'clickActionType', title: 'mailing.click' },
        { name: 'operatingSystem', title: 'mailing.system', help: 'mailing.systemHelp', hints: ['android', 'ios'] },
      ]}
      before={(values) => (
        <Stack gap="xs">
          <Audience ids={ids(values.memberId)} />
          <Channels topic={textOf(values.topic)} topics={topics} />
          <Letter title={textOf(values.title)} body={textOf(values.body)} language={textOf(values.language)} />
        </Stack>
      )}
      make={(values) => ({ ...values, memberId: ids(values.memberId) })}
      onDone={onDone}
    />
  );
}

/** The values of the form of an SMS: the filter beside the message. */
interface Message extends Partial<Record<'status' | 'type' | 'kycConfirm', string[]>> {
  to: string;
  userIds?: string[];
  levelId?: number;
  messageBody: string;
}

const some = (values: Partial<Message>) => values.to === 'some';

function SMS({ onDone }: { onDone: (answer: unknown) => void }) {
  const { t } = useTranslation();
  const statuses = useParameter<{ values?: string[] }>('USER_STATUS')?.values;
  const types = useParameter<{ values?: string[] }>('USER_TYPE')?.values;
  const choice = (values?: string[]): Input<Message>['kind'] => (values ? { many: values } : 'list');
  const fields: Input<Message>[] = [
    {
      name: 'to',
      title: 'mailing.to',
      required: true,
      kind: [
        { value: 'some', label: t('mailing.toSome') },
        { value: 'all', label: t('mailing.toAll') },
      ],
    },
    {
      name: 'userIds',
      title: 'mailing.accounts',
      kind: 'list',
      required: true,
      help: 'mailing.accountsHelp',
      when: some,
    },
    { name: 'status', title: 'mailing.status', kind: choice(statuses) },
    { name: 'type', title: 'mailing.type', kind: choice(types) },
    { name: 'kycConfirm', title: 'mailing.kyc', kind: 'list' },
    { name: 'levelId', title: 'mailing.level', kind: 'number' },
    { name: 'messageBody', title: 'mailing.body', kind: 'area', required: true },
  ];
  const filter = (values: Partial<Message>) =>
    Object.fromEntries(
      (['status', 'type', 'kycConfirm', 'levelId'] as const)
        .map((name): [string, unknown] => [name, values[name]])
        .filter(([, v]) => v !== undefined && !(Array.isArray(v) && v.length === 0)),
    );
  return (
    <Write
      method="post"
      path={sms}
      title="mailing.sms"
      touches={touches}
      initial={{ to: 'some' }}
      fields={fields}
      before={(values) => (
        <Stack gap="xs">
          <Audience
            ids={some(values) ? ids(values.userIds) : undefined}
            statuses={values.status}
            narrowed={Object.keys(filter(values)).some((name) => name !== 'status')}
            sms
          />
          <Length text={textOf(values.messageBody)} />
        </Stack>
      )}
      make={(values: Message) => ({
        ...(some(values) ? { userIds: ids(values.userIds) } : { sendAllUsers: true }),
        messageBody: values.messageBody,
        filter: filter(values),
      })}
      onDone={onDone}
    />
  );
}
