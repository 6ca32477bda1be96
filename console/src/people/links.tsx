/** The logins of an account at other services. */
import { Group, Text } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { Bulk } from '../kit/bulk';
import { List, type Column, type Row } from '../kit/list';
import { Whole } from '../kit/record';
import { Coded, Time } from '../kit/show';
import { Write } from '../kit/write';

const path = '/admin/user/link';
type UserLink = Row<typeof path>;

const columns: Column<UserLink>[] = [
  { key: 'issuer', title: 'user.link.issuer', show: (l) => <Coded of={l.issuer} /> },
  { key: 'subject', title: 'user.link.subject', show: (l) => <Coded of={l.subject} /> },
  { key: 'createdAt', title: 'user.link.created', show: (l) => <Time at={l.createdAt} /> },
];

export function Links({ id }: { id: string }) {
  const { t } = useTranslation();
  const [open, setOpen] = useState<UserLink>();
  const touches = [path, 'story', '/admin/audit'];
  return (
    <>
      <List
        path={path}
        title="user.links"
        empty="user.noLinks"
        columns={columns}
        fixed={{ userId: id }}
        inside
        size={undefined}
        id={(l) => `${l.issuer} ${l.subject}`}
        open={setOpen}
        actions={
          <Write
            method="post"
            path={path}
            title="user.link.add"
            touches={touches}
            fixed={{ userId: id }}
            fields={[
              { name: 'issuer', title: 'user.link.issuer', help: 'user.link.issuerHelp', required: true },
              { name: 'subject', title: 'user.link.subject', required: true },
            ]}
          />
        }
      />
      <Whole of={open} title="user.link" onClose={() => setOpen(undefined)}>
        {open && (
          <Group gap="xs">
            <Bulk
              method="delete"
              path={path}
              title="user.link.remove"
              go="user.link.remove"
              rows={[open]}
              touches={touches}
              onDone={() => setOpen(undefined)}
              name={(l) => <bdi dir="ltr">{`${l.issuer} · ${l.subject}`}</bdi>}
              body={({ userId, issuer, subject }) => ({ userId, issuer, subject })}
              button={{ color: 'red', variant: 'light' }}
            >
              <Text size="sm">{t('user.link.removeLead')}</Text>
            </Bulk>
          </Group>
        )}
      </Whole>
    </>
  );
}
