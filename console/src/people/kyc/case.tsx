/** The review screen: one case with its images, its checks and its decision. The next case is loaded meanwhile. */
import './kyc.css';
import {
  ActionIcon,
  Alert,
  Anchor,
  Badge,
  Button,
  Group,
  Kbd,
  Loader,
  Modal,
  Stack,
  Table,
  Text,
  Title,
} from '@mantine/core';
import { IconKeyboard } from '@tabler/icons-react';
import { useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { Activity, useEffect, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useId } from '../../app/address';
import { ask } from '../../app/api';
import { Problem } from '../../app/problem';
import { useMay } from '../../app/session';
import { useRead } from '../../kit/read';
import { Time } from '../../kit/show';
import { skip, useNext } from './cases';
import { Decide, Findings, type Sent } from './decide';
import { Account, Besides, Checks, Documents, type Case } from './facts';
import { useKeys } from '../../kit/keys';
import { decide, undo, usePending } from './pending';
import { usePresence, type Presence } from './presence';
import { keepOnly, take, useShots, type Shot } from './shelf';
import { Viewer } from './viewer';
import type { TextKey } from '../../text/key';

const casePath = '/admin/kyc-case';
const documentsPath = '/user/get-documents';
const documentsOf = (userId: string) => ({ userId, limit: 100 });

/**
 * The case of the address. Each case is a new screen: nothing of the previous one stays. The next one is rendered
 * ahead, hidden, and its effects run only when it is shown.
 */
export default function Cockpit() {
  const at = useId();
  const [ahead, setAhead] = useState<string>(); // the next case is shown before the address changes
  const navigate = useNavigate();
  useEffect(() => () => keepOnly(), []);
  if (ahead !== undefined && ahead === at) setAhead(undefined);
  const id = ahead ?? at;
  const [next] = useNext(id);
  const [ready, setReady] = useState('');
  const drawn = usePreload(id, next, ready === id);
  const go = (to: string | undefined) => {
    setAhead(to);
    setTimeout(() => void navigate({ to: to ? `/kyc/${to}` : '/kyc' })); // the screen first
  };
  return [...new Set([id, drawn ?? id])].map((one) => (
    <Activity key={one} mode={one === id ? 'visible' : 'hidden'}>
      <One id={one} next={one === id ? next : undefined} go={go} onReady={setReady} />
    </Activity>
  ));
}

/** Loads the next case in advance and releases finished ones. Returns the id of the case that is fully loaded. */
function usePreload(id: string, next: string | undefined, ready: boolean): string | undefined {
  const may = useMay();
  const queries = useQueryClient();
  const mayOpen = may('GET /admin/get-document-file');
  const [here, setHere] = useState<string>();
  useEffect(() => {
    if (!ready) return undefined;
    keepOnly(...[id, next ?? ''].filter(Boolean));
    if (!next) return undefined;
    let live = true;
    const query = documentsOf(next);
    const read = (path: typeof casePath | typeof documentsPath, asked: object) =>
      queries.prefetchQuery({
        queryKey: [path, asked, {}],
        queryFn: ({ signal }) => ask(path, { query: asked }, signal),
        staleTime: 60_000,
      });
    void Promise.all([
      take(next, mayOpen),
      read(documentsPath, query),
      may(`GET ${casePath}`) && read(casePath, { userId: next }),
    ]).then(
      () => live && setHere(next),
      () => undefined, // it is read again, and a failure shown, when it opens
    );
    return () => {
      live = false;
    };
  }, [id, next, ready, may, mayOpen, queries]);
  return here === next ? here : undefined;
}

interface OneProps {
  id: string;
  next?: string;
  go: (to: string | undefined) => void;
  /** Its images are loaded. */
  onReady: (id: string) => void;
}

function One({ id, next, go, onReady }: OneProps) {
  const { t } = useTranslation();
  const may = useMay();
  const mayOpen = may('GET /admin/get-document-file');
  const found = useRead(casePath, { userId: id }, { enabled: may(`GET ${casePath}`) });
  const documents = useRead(documentsPath, documentsOf(id));
  const { shots, problem } = useShots(id, mayOpen);
  const presence = usePresence(`kyc/${id}`);
  const { waiting, failed } = usePending();
  const [loaded, setLoaded] = useState(false);
  const ready = loaded || shots?.shots.length === 0;
  const done = ready || !!problem;
  const [help, setHelp] = useState(false);
  const [anyway, setAnyway] = useState(false);
  const [toggled, setToggled] = useState<ReadonlySet<string>>(new Set());
  useEffect(() => {
    if (done) onReady(id);
  }, [done, id, onReady]);

  const all = documents.data ?? [];
  const proposed = all.filter(
    (d) => d.status === 'active' && d.reason === 'waitingApproval' && d.type !== found.data?.types.address,
  );
  const chosen = new Set(all.map((d) => d.id).filter((one) => proposed.some((d) => d.id === one) !== toggled.has(one)));
  const onDecide = (sent: Sent) => {
    const deciding = shots?.documentId || all.find((d) => chosen.has(d.id))?.id || '';
    decide({
      userId: id,
      name: found.data?.fullName ?? id,
      body: { ...sent, userId: id, userDocumentId: [...chosen], documentId: deciding },
    });
    go(next);
  };
  const later = () => {
    skip(id);
    go(next);
  };
  const back = () => {
    const whose = undo();
    if (whose) go(whose);
  };
  useKeys({ n: later, u: back, b: () => go(undefined), '?': () => setHelp(true) });

  const aml = finding(found.data);
  const unknown = may(`GET ${casePath}`) && !found.data; // an AML finding would need a confirmation
  const why = useWhyNot(
    found.data,
    chosen.size,
    waiting.some((d) => d.userId === id),
  );
  return (
    <Stack data-testid="case" data-case={id} data-ready={ready || undefined}>
      <Group justify="space-between" className="kyc-head">
        <Group gap="xs">
          <Title order={1} size="h3">
            <bdi>{found.data?.fullName ?? t('kyc.case')}</bdi>
          </Title>
          {found.data && may('GET /admin/list-users') && (
            <Anchor component={Link} to={`/users/${id}`} size="sm">
              {t('user.title')}
            </Anchor>
          )}
        </Group>
        <Group gap="xs">
          <Button size="xs" variant="default" onClick={later} leftSection={<Kbd size="xs">n</Kbd>}>
            {t('kyc.later')}
          </Button>
          <Button size="xs" variant="default" onClick={() => go(undefined)} leftSection={<Kbd size="xs">b</Kbd>}>
            {t('kyc.back')}
          </Button>
          <ActionIcon
            variant="default"
            aria-label={t('kyc.keys')}
            title="?"
            onClick={() => setHelp(true)}
            data-testid="keys"
          >
            <IconKeyboard size={16} />
          </ActionIcon>
        </Group>
      </Group>
      {aml && <Findings aml={aml} />}
      <Others of={presence} anyway={anyway} onAnyway={() => setAnyway(true)} />
      {failed.has(id) && (
        <Alert color="red" title={t('kyc.failed')} data-testid="failed">
          <Problem of={failed.get(id)} />
        </Alert>
      )}
      <Problem of={found.error ?? documents.error ?? problem} />
      {!shots && !problem && <Loader size="sm" aria-label={t('loading')} />}
      <div className="kyc-cockpit">
        <Stack className="kyc-pictures">
          {shots &&
            (shots.shots.length > 0 ? (
              <>
                <Absent of={shots.shots} />
                <Viewer shots={shots.shots} onReady={() => setLoaded(true)} />
              </>
            ) : (
              <Alert color="gray">{t('kyc.noPictures')}</Alert>
            ))}
          {found.data && <Account of={found.data} />}
          {found.data && <Besides of={found.data} />}
        </Stack>
        <Stack className="kyc-rail" data-testid="rail">
          {may('POST /user/update-kyc') && (
            <Decide
              of={id}
              why={why}
              aml={aml}
              onDecide={onDecide}
              disabled={!!why || !shots || !documents.data || unknown || (presence.taken && !anyway)}
            />
          )}
          {found.data && <Checks of={found.data} />}
          <Documents
            of={all}
            types={found.data?.types}
            chosen={chosen}
            onChoose={(one) =>
              setToggled((old) => {
                const now = new Set(old);
                if (!now.delete(one)) now.add(one);
                return now;
              })
            }
          />
        </Stack>
      </div>
      <Help opened={help} onClose={() => setHelp(false)} />
    </Stack>
  );
}

/** The AML status of a case, if it is a finding. */
const finding = (found?: Case) => (found?.amlStatus && found.amlStatus !== 'notRisky' ? found.amlStatus : undefined);

/** The parts of an identity that are not uploaded, because a missing part is easily overlooked. */
function Absent({ of }: { of: Shot[] }) {
  const { t } = useTranslation();
  const parts = (['front', 'back', 'selfie'] as const).filter(
    (part) => !of.some((shot) => shot.known && shot.part === part),
  );
  if (parts.length === 0 || of.some((shot) => !shot.known)) return null; // a document without a type may be any of them
  return (
    <Text size="sm" data-testid="absent">
      {t('kyc.absent')} {parts.map((part) => t(`kyc.part.${part}`)).join(', ')}
    </Text>
  );
}

/** The reason why there is nothing to decide; undefined otherwise. */
function useWhyNot(found: Case | undefined, chosen: number, decided: boolean): string | undefined {
  const { t } = useTranslation();
  if (decided) return t('kyc.not.waiting');
  if (found && found.kycConfirm !== 'waitingApproval') {
    const state = t(`kyc.verdict.${found.kycConfirm}`, { defaultValue: found.kycConfirm ?? '' });
    return t(found.addressConfirmed === 'waitingApproval' ? 'kyc.not.address' : 'kyc.not.decided', { state });
  }
  if (chosen === 0) return t('kyc.not.documents');
  return undefined;
}

function Others({ of: { others, taken }, anyway, onAnyway }: { of: Presence; anyway: boolean; onAnyway: () => void }) {
  const { t } = useTranslation();
  if (others.length === 0) return null;
  return (
    <Alert color="yellow" role="status" data-testid="others" title={t('kyc.others')}>
      <Group gap="xs">
        {others.map((o) => (
          <Badge key={o.userId} variant="default" tt="none">
            <bdi>{o.fullName || o.userId}</bdi>
          </Badge>
        ))}
        <Text size="sm">
          {t('kyc.others.since')} <Time at={others[0]?.since} />
        </Text>
        {taken && !anyway && (
          <Button size="compact-sm" variant="default" onClick={onAnyway} data-testid="anyway">
            {t('kyc.anyway')}
          </Button>
        )}
      </Group>
    </Alert>
  );
}

const keys: [string, TextKey][] = [
  ['1  Enter', 'kyc.key.approve'],
  ['2  1…9  Enter', 'kyc.key.reject'],
  ['3  Enter', 'kyc.key.machine'],
  ['a', 'kyc.aml.sure'],
  ['Esc', 'kyc.key.clear'],
  ['u', 'kyc.key.undo'],
  ['n', 'kyc.later'],
  ['b', 'kyc.back'],
  ['+  −  0', 'kyc.key.zoom'],
  ['r  l', 'kyc.key.turn'],
  ['← ↑ ↓ →', 'kyc.key.move'],
  ['?', 'kyc.keys'],
];

function Help({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  const { t } = useTranslation();
  return (
    <Modal opened={opened} onClose={onClose} title={t('kyc.keys')}>
      <Table>
        <Table.Tbody>
          {keys.map(([key, what]) => (
            <Table.Tr key={key}>
              <Table.Th>
                <Kbd dir="ltr">{key}</Kbd>
              </Table.Th>
              <Table.Td>{t(what)}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      <Text size="sm" c="dimmed" mt="sm">
        {t('kyc.keys.pictures')}
      </Text>
    </Modal>
  );
}
