/** One version of a contract: its sections in order. Drag, buttons and keys change the order. */
import { ActionIcon, Alert, Button, Checkbox, Group, Paper, Stack, Text, Title, VisuallyHidden } from '@mantine/core';
import { IconArrowDown, IconArrowUp, IconGripVertical } from '@tabler/icons-react';
import { useEffect, useRef, useState, type KeyboardEvent } from 'react';
import { useTranslation } from 'react-i18next';
import { useId } from '../app/address';
import { useAct } from '../app/act';
import { Problem } from '../app/problem';
import { useMay } from '../app/session';
import { useRead } from '../kit/read';
import { useAddressed } from '../kit/drawer';
import { Fact, Facts } from '../kit/record';
import { Id, Status, Time } from '../kit/show';
import { Write } from '../kit/write';
import { RichText } from './richtext';
import { useOrder } from './order';
import { AddMany, DeleteMany, details, Replace, type Section } from './sections';
import { SectionForm } from './section';
import { VersionActions, versions } from './version';

const reorder = '/admin/reorder-contract-details';

export default function Contract() {
  const { t } = useTranslation();
  const may = useMay();
  const id = useId();
  const listed = may(`GET ${versions}`);
  const all = useRead(versions, undefined, { enabled: listed }).data;
  const version = all?.find((v) => String(v.id) === id);
  const enabled = !listed && may('GET /admin/get-contracts');
  const plain = useRead('/admin/get-contracts', { id }, { enabled }).data?.[0];
  const contract = version ?? plain;
  const final = version?.status === 'replaced';
  const stored = useRead(details, { contractId: id });
  const order = useOrder(stored.data ?? []);
  const [chosen, setChosen] = useState<ReadonlySet<number>>(new Set());
  const adding = useAddressed('form', 'section');
  const picked = order.rows.filter((row) => chosen.has(row.id));
  const after = () => setChosen(new Set());
  return (
    <Stack>
      <Group justify="space-between">
        <Title order={1} size="h3">
          <bdi>{contract?.name ?? t('contract.one')}</bdi>
        </Title>
        <Group gap="xs">
          {!final && (
            <>
              {may('POST /admin/create-contract-detail') && (
                <Button size="xs" onClick={adding.open} data-testid="section-add">
                  {t('contract.add')}
                </Button>
              )}
              <AddMany contractId={id} />
              <Replace sections={picked.length ? picked : order.rows} />
              {picked.length > 0 && <DeleteMany sections={picked} onDone={after} />}
            </>
          )}
          {version && all && <VersionActions key={version.id} of={version} all={all} sections={stored.data ?? []} />}
        </Group>
      </Group>
      {final && <Alert color="gray">{t('contract.replacedHelp')}</Alert>}
      {contract && (
        <Facts>
          <Fact title="contract.code">
            <Id of={contract.code} />
          </Fact>
          <Fact title="contract.version">{contract.version ?? '–'}</Fact>
          <Fact title={version ? 'contract.status' : 'contract.active'}>
            <Status of={version?.status ?? contract.isActive} />
          </Fact>
          {version && (
            <Fact title="contract.published">
              <Time at={version.publishedAt} />
            </Fact>
          )}
          <Fact title="contract.created">
            <Time at={contract.createdAt} />
          </Fact>
        </Facts>
      )}
      <Problem of={stored.error} />
      {stored.data?.length === 0 && <Alert color="gray">{t('contract.empty')}</Alert>}
      {order.changed && <SaveOrder contractId={id} order={order} />}
      <Sections
        contractId={id}
        order={order}
        final={final}
        chosen={chosen}
        onChoose={(one) =>
          setChosen((old) => {
            const next = new Set(old);
            if (!next.delete(one)) next.add(one);
            return next;
          })
        }
      />
      {adding.opened && <SectionForm contractId={id} onClose={adding.close} onDone={adding.done} />}
    </Stack>
  );
}

function SaveOrder({ contractId, order }: { contractId: string; order: ReturnType<typeof useOrder<Section>> }) {
  const { t } = useTranslation();
  const act = useAct('post', reorder, [details]);
  return (
    <Alert color="yellow" data-testid="order-changed">
      <Stack gap="xs">
        <Text size="sm">{t('contract.orderChanged')}</Text>
        <Problem of={act.problem} />
        <Group>
          <Button
            size="xs"
            loading={act.busy}
            data-testid="order-save"
            onClick={() => {
              const moved = order.rows.map((row, n) => ({ id: row.id, orderNo: n }));
              void act
                .run({ contractId, details: moved })
                .then((done) => done && order.reset(moved.map(({ id }) => id)));
            }}
          >
            {t('contract.orderSave')}
          </Button>
          <Button size="xs" variant="default" onClick={() => order.reset()}>
            {t('cancel')}
          </Button>
        </Group>
      </Stack>
      {act.view}
    </Alert>
  );
}

function Edit({ contractId, of }: { contractId: string; of: Section }) {
  const { t } = useTranslation();
  const drawer = useAddressed('form', `section:${of.id}`);
  return (
    <>
      <Button size="compact-xs" variant="default" data-testid="section-edit" onClick={drawer.open}>
        {t('contract.edit')}
      </Button>
      {drawer.opened && <SectionForm contractId={contractId} of={of} onClose={drawer.close} onDone={drawer.done} />}
    </>
  );
}

function Sections({
  contractId,
  order,
  final,
  chosen,
  onChoose,
}: {
  contractId: string;
  order: ReturnType<typeof useOrder<Section>>;
  /** The sections cannot change. */
  final: boolean;
  chosen: ReadonlySet<number>;
  onChoose: (id: number) => void;
}) {
  const { t } = useTranslation();
  const may = useMay();
  const movable = !final && may(`POST ${reorder}`);
  const dragged = useRef<number>(undefined);
  const [moved, setMoved] = useState<{ id: number; title: string; place: number }>();
  // The row moved in the page, which loses the focus.
  useEffect(() => {
    if (moved) document.querySelector<HTMLElement>(`[data-handle="${moved.id}"]`)?.focus();
  }, [moved]);
  const move = (from: number, to: number) => {
    const row = order.rows[from];
    if (!row || to < 0 || to >= order.rows.length) return;
    order.move(from, to);
    setMoved({ id: row.id, title: row.title, place: to + 1 });
  };
  const keys = (n: number) => (event: KeyboardEvent) => {
    const to = { ArrowUp: n - 1, ArrowDown: n + 1, Home: 0, End: order.rows.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    move(n, to);
  };
  return (
    <>
      <VisuallyHidden role="status" aria-live="polite">
        {moved && t('contract.moved', { title: moved.title, place: moved.place, count: order.rows.length })}
      </VisuallyHidden>
      <Stack gap="xs" component="ol" p={0} m={0} style={{ listStyle: 'none' }}>
        {order.rows.map((row, n) => (
          <Paper
            key={row.id}
            withBorder
            p="sm"
            component="li"
            data-testid="section"
            data-id={row.id}
            onDragOver={(event) => event.preventDefault()}
            onDrop={(event) => {
              event.preventDefault();
              if (dragged.current !== undefined) move(dragged.current, n);
            }}
          >
            <Group justify="space-between" mb="xs">
              <Group gap="xs">
                {!final && (
                  <Checkbox
                    aria-label={`${t('list.choose')}: ${row.title}`}
                    checked={chosen.has(row.id)}
                    onChange={() => onChoose(row.id)}
                  />
                )}
                {movable && (
                  <>
                    <ActionIcon
                      variant="subtle"
                      draggable
                      data-handle={row.id}
                      data-testid="handle"
                      onKeyDown={keys(n)}
                      aria-label={t('contract.handle', { title: row.title })}
                      style={{ cursor: 'grab' }}
                      onDragStart={(event) => {
                        event.dataTransfer.setData('text/plain', row.title);
                        dragged.current = n;
                      }}
                      onDragEnd={() => {
                        dragged.current = undefined;
                      }}
                    >
                      <IconGripVertical size={16} />
                    </ActionIcon>
                    <ActionIcon
                      variant="subtle"
                      aria-label={t('contract.up', { title: row.title })}
                      disabled={n === 0}
                      onClick={() => move(n, n - 1)}
                    >
                      <IconArrowUp size={16} />
                    </ActionIcon>
                    <ActionIcon
                      variant="subtle"
                      aria-label={t('contract.down', { title: row.title })}
                      disabled={n === order.rows.length - 1}
                      onClick={() => move(n, n + 1)}
                    >
                      <IconArrowDown size={16} />
                    </ActionIcon>
                  </>
                )}
                <Title order={2} size="h5">
                  <bdi>{row.title || t('contract.untitled')}</bdi>
                </Title>
              </Group>
              <Group gap="xs">
                {!final && may('POST /admin/update-contract-detail') && <Edit contractId={contractId} of={row} />}
                {!final && (
                  <Write
                    method="post"
                    path="/admin/delete-contract-detail"
                    title="contract.delete"
                    touches={[details]}
                    fields={[]}
                    fixed={{ id: row.id }}
                    button={{ size: 'compact-xs', color: 'red', variant: 'light' }}
                    before={() => (
                      <Text>
                        <bdi>{row.title}</bdi>
                      </Text>
                    )}
                  />
                )}
              </Group>
            </Group>
            <RichText html={row.content} />
          </Paper>
        ))}
      </Stack>
    </>
  );
}
