/** The timeline of an account: all events that the service has, in one stream by time. */
import { Alert, Badge, Button, Chip, Group, Loader, Stack, Text, Timeline, Title, UnstyledButton } from '@mantine/core';
import { IconAlertTriangle } from '@tabler/icons-react';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useAddress } from '../app/address';
import { Problem } from '../app/problem';
import { useMay } from '../app/session';
import type { Column } from '../kit/list';
import { Whole } from '../kit/record';
import { Time } from '../kit/show';
import { Links, type Entry } from '../app/entry';
import { useSaid } from '../text/said';
import { take, type Event, type EventKind } from './merge';
import { kinds, source } from './sources';
import { looks, repeats } from './events';
import { Refused, type Login } from './logins';
import { columnsOf } from './tabs';

const pageSize = 50;
/** Kinds that are hidden at first, because they are so many that they hide the others. */
const rather = new Set(['act', 'movement']);
/** Kinds whose record is an audit entry. */
const audited = new Set(['audit', 'act', 'movement']);

export function Story({ id }: { id: string }) {
  const { t } = useTranslation();
  const may = useMay();
  const [search, go] = useAddress();
  const known = kinds.filter((k) => may(`GET ${String(k.path)}`));
  const chosen = search.kinds ? search.kinds.split(' ') : known.map((k) => k.kind).filter((k) => !rather.has(k));
  const asked = known.filter((k) => chosen.includes(k.kind));
  const [open, setOpen] = useState<Event>();
  const pages = useInfiniteQuery({
    queryKey: ['story', id, asked.map((k) => k.kind)],
    queryFn: ({ pageParam, signal }) =>
      take(
        asked.map((k) => source(k, id)),
        pageParam,
        pageSize,
        (event) => repeats(event, chosen, id),
        signal,
      ),
    initialPageParam: {},
    getNextPageParam: (last) => (last.more ? last.place : undefined),
  });
  const read = pages.data?.pages ?? [];
  const nothing = read.every((page) => page.events.length + page.failed.length === 0) && !pages.hasNextPage;
  return (
    <Stack data-testid="story">
      <Title order={2} size="h4">
        {t('user.tab.story')}
      </Title>
      <Chip.Group multiple value={chosen} onChange={(next) => go({ kinds: next.length ? next.join(' ') : undefined })}>
        <Group gap="xs" role="group" aria-label={t('story.kinds')}>
          {known.map((k) => (
            <Chip key={k.kind} value={k.kind} size="xs" variant="light" data-testid={`kind-${k.kind}`}>
              {t(`story.kind.${k.kind}`)}
            </Chip>
          ))}
        </Group>
      </Chip.Group>
      <Problem of={pages.error} />
      {pages.isPending && asked.length > 0 && <Loader aria-label={t('loading')} />}
      {pages.data && nothing && <Alert color="gray">{t('list.empty')}</Alert>}
      <Timeline bulletSize={26} lineWidth={2}>
        {read.flatMap((page) => [
          ...page.failed.map((f) => (
            <Gap key={`gap ${f.kind}`} {...f} busy={pages.isFetching} again={() => void pages.refetch()} />
          )),
          ...page.events.map((event) => (
            <One key={`${event.kind} ${event.id}`} event={event} onOpen={() => setOpen(event)} />
          )),
        ])}
      </Timeline>
      {pages.hasNextPage && (
        <Button
          variant="default"
          w="fit-content"
          loading={pages.isFetchingNextPage}
          data-testid="older"
          onClick={() => void pages.fetchNextPage()}
        >
          {t('story.older')}
        </Button>
      )}
      <Whole
        of={open?.record}
        columns={open && (columnsOf[open.kind] as readonly Column<object>[] | undefined)}
        title={`story.kind.${open?.kind ?? 'audit'}`}
        onClose={() => setOpen(undefined)}
      >
        {open?.kind === 'login' && <Refused of={open.record as Login} />}
        {audited.has(open?.kind ?? '') && <Links entry={open!.record as Entry} onLeave={() => setOpen(undefined)} />}
      </Whole>
    </Stack>
  );
}

/** Marks the place where a list could not be read and its events are missing. */
function Gap({ kind, problem, busy, again }: { kind: EventKind; problem: unknown; busy: boolean; again: () => void }) {
  const { t } = useTranslation();
  return (
    <Timeline.Item
      bullet={<IconAlertTriangle size={14} aria-hidden />}
      color="red"
      data-testid="gap"
      data-kind={kind}
      title={t('story.gap', { kind: t(`story.kind.${kind}`) })}
    >
      <Problem of={problem} />
      <Button size="xs" variant="default" mt="xs" loading={busy} onClick={again} data-testid="again">
        {t('story.again')}
      </Button>
    </Timeline.Item>
  );
}

function One({ event, onOpen }: { event: Event; onOpen: () => void }) {
  const { t } = useTranslation();
  const { icon: Icon, title, bad, what } = looks(event, t, useSaid());
  return (
    <Timeline.Item
      bullet={<Icon size={14} aria-hidden />}
      color={bad ? 'red' : undefined}
      data-testid="event"
      data-kind={event.kind}
      title={
        <Group gap="xs">
          <UnstyledButton onClick={onOpen}>
            <Text td="underline" component="span" fw={600}>
              {title}
            </Text>
          </UnstyledButton>
          {bad && event.kind !== 'login' && (
            <Badge color="red" variant="light" tt="none">
              {t('story.refused')}
            </Badge>
          )}
        </Group>
      }
    >
      {what && (
        <Text size="sm" component="div">
          {what}
        </Text>
      )}
      <Text size="xs" c="dimmed" component="div">
        {t(`story.kind.${event.kind}`)} · <Time at={event.at} />
      </Text>
    </Timeline.Item>
  );
}
