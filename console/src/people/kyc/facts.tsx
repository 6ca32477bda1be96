/** The data of a case: the account, the checks of the service, its documents. */
import { Alert, Badge, Checkbox, Group, List, Stack, Text, Title } from '@mantine/core';
import { IconAlertTriangle, IconCheck, IconQuestionMark } from '@tabler/icons-react';
import { useId } from 'react';
import { useTranslation } from 'react-i18next';
import { useMay } from '../../app/session';
import type { Answer } from '../../kit/read';
import { useRead } from '../../kit/read';
import { Fact, Facts } from '../../kit/record';
import { Id, plain, Status, Time } from '../../kit/show';
import { Write } from '../../kit/write';
import { Person } from '../../kit/person';
import { Standing } from '../parts';
import { ChangeDocument, Look, type Document } from './document';
import { numberedLevel } from '../../kit/word';

export type Case = Answer<'/admin/kyc-case'>;

/** A decision on an identity or an address, in the user's language. */
export function Verdict({ of }: { of?: string | null }) {
  const { t, i18n } = useTranslation();
  const name = of ? t(`kyc.verdict.${of}`, { defaultValue: of }) : '';
  return <Status of={of} name={name.slice(0, 1).toLocaleUpperCase(i18n.language) + name.slice(1)} />;
}

export function Account({ of }: { of: Case }) {
  return (
    <Facts>
      <Fact title="user.id">
        <Id of={of.userId} short />
      </Fact>
      <Fact title="kyc.state">
        <Verdict of={of.kycConfirm} />
      </Fact>
      <Fact title="users.status">
        <Standing of={of.status} />
      </Fact>
      <Fact title="kyc.born">{of.birthDate ? <bdi dir="ltr">{of.birthDate}</bdi> : plain(null)}</Fact>
      <Fact title="kyc.address">
        <Verdict of={of.addressConfirmed} />
      </Fact>
      <Fact title="aml.status">
        <Status of={of.amlStatus} />
      </Fact>
      <Fact title="kyc.level">{plain(of.levelId)}</Fact>
      <Fact title="kyc.registered">
        <Time at={of.createdAt} />
      </Fact>
    </Facts>
  );
}

type Check = 'identityNumber' | 'register' | 'name' | 'birthDate' | 'sameNumber';

/** The results of the service's checks, good, bad or unknown: by a sign and a text, not by colour alone. */
export function Checks({ of }: { of: Case }) {
  const { t } = useTranslation();
  const heading = useId(); // the next case is on the page too, hidden
  const { sameNumber, ...found } = of.checks;
  const all: [Check, boolean | null][] = [
    ...(['identityNumber', 'register', 'name', 'birthDate'] as const).map((name): [Check, boolean | null] => [
      name,
      found[name],
    ]),
    ['sameNumber', found.identityNumber === null ? null : sameNumber === 0],
  ];
  return (
    <section aria-labelledby={heading} data-testid="checks">
      <Title order={2} size="h6" id={heading}>
        {t('kyc.checks')}
      </Title>
      <List size="sm" listStyleType="none" spacing={2}>
        {all.map(([name, good]) => (
          <List.Item
            key={name}
            data-check={name}
            data-good={String(good)}
            icon={
              good === null ? (
                <IconQuestionMark size={16} aria-hidden />
              ) : good ? (
                <IconCheck size={16} color="var(--mantine-color-green-light-color)" aria-hidden />
              ) : (
                <IconAlertTriangle size={16} color="var(--mantine-color-red-light-color)" aria-hidden />
              )
            }
          >
            {t(`kyc.check.${name}.${good === null ? 'unknown' : good ? 'good' : 'bad'}`, { count: sameNumber })}
          </List.Item>
        ))}
      </List>
      {of.decision && (
        <Alert mt="xs" color="gray" title={t('kyc.last')}>
          <Group gap="xs">
            <Verdict of={of.decision.kycConfirm} />
            <Time at={of.decision.decidedAt} />
            <Person id={of.decision.decidedBy} />
          </Group>
          {of.decision.rejectedResult && (
            <Text size="sm">
              <bdi>{of.decision.rejectedResult}</bdi>
            </Text>
          )}
        </Alert>
      )}
    </section>
  );
}

/** The documents of the account. The selected ones get the status of the decision. */
export function Documents({
  of,
  types,
  chosen,
  onChoose,
}: {
  of: Document[];
  types?: Case['types'];
  chosen: ReadonlySet<string>;
  onChoose: (id: string, yes: boolean) => void;
}) {
  const { t } = useTranslation();
  const may = useMay();
  const heading = useId();
  const part = (d: Document) => Object.entries(types ?? {}).find(([, code]) => code === d.type)?.[0];
  return (
    <section aria-labelledby={heading}>
      <Title order={2} size="h6" id={heading}>
        {t('kyc.documents')}
      </Title>
      <Stack gap="xs">
        {of.map((d) => (
          <Stack key={d.id} gap={4} data-testid="case-document">
            <Checkbox
              size="xs"
              checked={chosen.has(d.id)}
              onChange={(event) => onChoose(d.id, event.currentTarget.checked)}
              label={
                <Group gap="xs">
                  <bdi>{d.name}</bdi>
                  {part(d) && (
                    <Badge variant="light" tt="none">
                      {t(`kyc.part.${part(d)}`, { defaultValue: part(d) ?? '' })}
                    </Badge>
                  )}
                  <Status of={d.status} />
                  {d.reason && <Verdict of={d.reason} />}
                </Group>
              }
            />
            <Group gap="xs">
              {may('GET /admin/get-document-file') && <Look of={d} />}
              <ChangeDocument of={d} button={{ size: 'xs' }} />
            </Group>
          </Stack>
        ))}
        {of.length === 0 && (
          <Text size="sm" c="dimmed">
            {t('kyc.documents.none')}
          </Text>
        )}
      </Stack>
    </section>
  );
}

const decisions = ['waitingApproval', 'manuelApproved', 'rejected'] as const;

/** The address and the level: the other decisions of a reviewer. */
export function Besides({ of }: { of: Case }) {
  const { t } = useTranslation();
  const may = useMay();
  const levels = useRead('/admin/levels-info', undefined, {
    enabled: may('GET /admin/levels-info') && may('POST /level/update-level'),
  });
  const touches = ['/admin/kyc-case', '/user/get-documents', '/admin/list-users'];
  return (
    <Group gap="xs">
      <Write
        method="post"
        path="/user/update-confirmed"
        title="kyc.confirmAddress"
        touches={touches}
        fixed={{ userId: of.userId }}
        initial={{ addressConfirmed: 'manuelApproved' }}
        fields={[
          {
            name: 'addressConfirmed',
            title: 'kyc.address',
            required: true,
            kind: decisions.map((value) => ({ value, label: t(`kyc.verdict.${value}`) })),
          },
          { name: 'addressDescription', title: 'documents.reason', kind: 'area' },
        ]}
      />
      {levels.data && (
        <Write
          method="post"
          path="/level/update-level"
          title="kyc.giveLevel"
          touches={touches}
          fixed={{ userId: of.userId }}
          fields={[
            {
              name: 'levelId',
              title: 'kyc.level',
              required: true,
              kind: levels.data.map((l) => ({ value: String(l.levelId), label: numberedLevel(l, t) })),
            },
          ]}
        />
      )}
    </Group>
  );
}
