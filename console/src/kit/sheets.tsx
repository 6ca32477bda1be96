/** Shared parts of several screens: tabs in the address, and lists of jobs. */
import { Group, Stack, Tabs, Text, Title } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useEffect, type ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { useAddress, useTexts } from '../app/address';
import { useMay } from '../app/session';
import { JobBar, jobColumns } from './job';
import { List, type Next } from './list';
import { useRead } from './read';
import type { TextKey } from '../text/key';

/** The member `data` of an answer. */
export function said<T>(answer: unknown): T {
  const whole = answer as { data?: T } & T;
  return whole.data ?? whole;
}

export interface Sheet {
  name: string;
  /** Key of its name. */
  title: TextKey;
  /** Shown to users with this permission. */
  needs: string;
  show: () => ReactNode;
}

/** The sheets of one screen. The address names the open one. */
export function Sheets({ sheets, label }: { sheets: Sheet[]; label: TextKey }) {
  const { t } = useTranslation();
  const may = useMay();
  const navigate = useNavigate();
  const { tab } = useTexts();
  const open = sheets.filter((s) => may(s.needs));
  const shown = open.find((s) => s.name === tab) ?? open[0];
  if (!shown) return null;
  return (
    <Tabs
      variant="pills"
      value={shown.name}
      keepMounted={false}
      onChange={(name) => void navigate({ to: '.', search: { tab: name ?? '' } })}
    >
      <Tabs.List aria-label={t(label)}>
        {open.map((s) => (
          <Tabs.Tab key={s.name} value={s.name} data-testid={`tab-${s.name}`}>
            {t(s.title)}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {open.map((s) => (
        <Tabs.Panel key={s.name} value={s.name} pt="md">
          {s.name === shown.name && s.show()}
        </Tabs.Panel>
      ))}
    </Tabs>
  );
}

const jobs = '/admin/jobs';

/** A screen whose writes start jobs: the job in the address, and the jobs of its kinds below. */
export function JobScreen({
  title,
  kinds,
  actions,
  empty,
  next,
  unlisted,
  children,
}: {
  title: TextKey;
  kinds: readonly string[];
  actions: ReactNode;
  empty: TextKey;
  next: Next;
  /** Key of the text for users who may start jobs and not list them. */
  unlisted?: TextKey;
  children?: (job: string) => ReactNode;
}) {
  const { t } = useTranslation();
  const may = useMay();
  const [job, follow] = useJob();
  const queries = useQueryClient();
  const followed = job && may('GET /admin/jobs/{id}');
  const state = useRead('/admin/jobs/{id}', undefined, { places: { id: job }, enabled: !!followed }).data?.status;
  useEffect(() => {
    void queries.invalidateQueries({ queryKey: [jobs] });
  }, [state, queries]); // the list shows it too
  const above = (
    <>
      {followed && <JobBar id={job} />}
      {job && children?.(job)}
    </>
  );
  if (!may(`GET ${jobs}`)) {
    return (
      <Stack>
        <Group justify="space-between">
          <Title order={1} size="h3">
            {t(title)}
          </Title>
          <Group gap="xs">{actions}</Group>
        </Group>
        {above}
        {unlisted && <Text c="dimmed">{t(unlisted)}</Text>}
      </Stack>
    );
  }
  return (
    <List
      path={jobs}
      title={title}
      columns={jobColumns}
      fixed={{ type: kinds[0] }}
      actions={actions}
      empty={empty}
      next={next}
      above={above}
      filters={
        kinds.length > 1
          ? [
              {
                name: 'type',
                title: 'jobs.type',
                kind: kinds.map((value) => ({ value, label: t(`job.${value}`, { defaultValue: value }) })),
              },
            ]
          : []
      }
      id={(j) => j.id}
      open={(j) => follow(j.id)}
    />
  );
}

/** The job in the address, and a function to change it. */
export function useJob(): [string, (id?: string | null) => void] {
  const [{ job = '' }, go] = useAddress();
  return [
    job,
    (id) => {
      if (id) go({ job: id });
    },
  ];
}
