/** The notifications of the user's own account. */
import { useAct } from '../app/act';
import { Button } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { Problem } from '../app/problem';
import { List, type Column, type FilterOf, type Row } from '../kit/list';
import { Time } from '../kit/show';

const path = '/user/notifications';

const columns: Column<Row<typeof path>>[] = [
  { key: 'createdAt', title: 'own.at', show: (n) => <Time at={n.createdAt} /> },
  { key: 'title', title: 'own.subject', show: (n) => <bdi>{n.title || begin(n.body)}</bdi> },
  { key: 'body', title: 'own.text' },
  { key: 'topic', title: 'own.topic', hidden: true },
  { key: 'readAt', title: 'own.read', show: (n) => <Time at={n.readAt} /> },
];

/** The first words of a text, where there is no title. */
export function begin(text: string, most = 40): string {
  if (text.length <= most) return text;
  return `${text.slice(0, text.lastIndexOf(' ', most)).slice(0, most) || text.slice(0, most)}…`;
}

const filters: FilterOf<typeof path>[] = [{ name: 'unread', title: 'own.unread', kind: 'flag' }];

export default function Notifications() {
  const { t } = useTranslation();
  const read = useAct('post', '/user/notifications/read', [path]);
  return (
    <>
      <Problem of={read.problem} />
      <List
        path={path}
        title="own.notifications"
        columns={columns}
        empty="own.noNotifications"
        filters={filters}
        id={(n) => n.id}
        actions={
          <Button
            size="xs"
            variant="default"
            loading={read.busy}
            data-testid="read-all"
            onClick={() => void read.run({ all: true })}
          >
            {t('own.readAll')}
          </Button>
        }
        bulk={(rows, clear) => (
          <Button
            size="xs"
            loading={read.busy}
            onClick={() => void read.run({ ids: rows.map((n) => n.id) }).then((done) => done && clear())}
          >
            {t('own.markRead')}
          </Button>
        )}
      />
      {read.view}
    </>
  );
}
