/** The announcements: the list, and a preview of each. */
import { Button, Group, Stack } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useMay } from '../app/session';
import { Bulk } from '../kit/bulk';
import { List, type Column, type FilterOf } from '../kit/list';
import { useAddressed } from '../kit/drawer';
import { useNow } from '../kit/now';
import { Whole } from '../kit/record';
import { Status, Time } from '../kit/show';
import { Write } from '../kit/write';
import { AnnouncementForm } from './announcement';
import { announcements, Told, type Announcement } from './preview';

const columns: Column<Announcement>[] = [
  { key: 'title', title: 'announcement.subject', show: (a) => <bdi>{a.title}</bdi> },
  { key: 'isActive', title: 'announcement.state', card: 'top', show: (a) => <Phase of={a} /> },
  { key: 'startDate', title: 'announcement.start', show: (a) => <Time at={a.startDate} /> },
  { key: 'endDate', title: 'announcement.end', show: (a) => <Time at={a.endDate} /> },
  { key: 'priority', title: 'announcement.priority', card: 'none', end: true },
  { key: 'isPinned', title: 'announcement.pinned', card: 'none', show: (a) => <Status of={a.isPinned} /> },
  { key: 'showSlider', title: 'announcement.slider', card: 'none', show: (a) => <Status of={a.showSlider ?? false} /> },
  { key: 'slug', title: 'announcement.slug', show: (a) => <bdi dir="ltr">{a.slug}</bdi>, hidden: true },
  { key: 'orderNo', title: 'announcement.order', hidden: true },
  { key: 'sliderClientType', title: 'announcement.client', hidden: true },
];

/** Whether users see an announcement now: it is active, and its time has begun and has not ended. */
function Phase({ of: { isActive, startDate, endDate } }: { of: Announcement }) {
  const now = useNow(60_000);
  if (!isActive) return <Status of="INACTIVE" />;
  if (Date.parse(startDate) > now) return <Status of="scheduled" />;
  return <Status of={Date.parse(endDate) < now ? 'ended' : 'live'} />;
}

const filters: FilterOf<typeof announcements>[] = [
  { name: 'isActive', title: 'announcement.active', kind: 'flag' },
  { name: 'slug', title: 'announcement.slug' },
];

export default function Announcements() {
  const { t } = useTranslation();
  const may = useMay();
  const [open, setOpen] = useState<Announcement>();
  const adding = useAddressed('form', 'new');
  const remove = '/announcement/delete';
  return (
    <>
      <List
        path={announcements}
        title="announcement.title"
        empty="announcement.none"
        next={{ title: 'announcement.add', form: 'new', needs: 'POST /announcement/add' }}
        columns={columns}
        filters={filters}
        size={undefined}
        id={(a) => String(a.id)}
        open={setOpen}
        actions={
          may('POST /announcement/add') && (
            <Button size="xs" onClick={adding.open} data-testid="announcement-add">
              {t('announcement.add')}
            </Button>
          )
        }
        bulk={
          may(`POST ${remove}`)
            ? (rows, clear) => (
                <Bulk
                  method="post"
                  path={remove}
                  title="announcement.delete"
                  rows={rows}
                  name={(a) => <bdi>{a.title}</bdi>}
                  body={(a) => ({ id: a.id })}
                  touches={[announcements]}
                  onDone={clear}
                  button={{ color: 'red', variant: 'light' }}
                />
              )
            : undefined
        }
      />
      <Whole of={open} title="announcement.one" onClose={() => setOpen(undefined)}>
        {open && (
          <Stack>
            <Group>
              <Edit of={open} onDone={() => setOpen(undefined)} />
              <Write
                method="post"
                path={remove}
                title="announcement.delete"
                touches={[announcements]}
                fields={[]}
                fixed={{ id: open.id }}
                button={{ color: 'red', variant: 'light' }}
                onDone={() => setOpen(undefined)}
              />
            </Group>
            <Told id={open.id} />
          </Stack>
        )}
      </Whole>
      {adding.opened && <AnnouncementForm onClose={adding.close} onDone={adding.done} />}
    </>
  );
}

function Edit({ of, onDone }: { of: Announcement; onDone: () => void }) {
  const { t } = useTranslation();
  const drawer = useAddressed('form', `change:${of.id}`);
  return (
    <>
      <Button size="xs" data-testid="announcement-edit" onClick={drawer.open}>
        {t('announcement.change')}
      </Button>
      {drawer.opened && (
        <AnnouncementForm
          of={of}
          onClose={drawer.close}
          onDone={() => {
            drawer.done();
            onDone();
          }}
        />
      )}
    </>
  );
}
