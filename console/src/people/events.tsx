/** The display of timeline events, and the detection of duplicates. */
import {
  IconCoins,
  IconFile,
  IconHistory,
  IconLock,
  IconLogin2,
  IconMail,
  IconShield,
  IconUserShield,
  type IconProps,
} from '@tabler/icons-react';
import type { TFunction } from 'i18next';
import type { ComponentType, ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import type { Row } from '../kit/list';
import { Id, Money, Status } from '../kit/show';
import { actName } from '../app/actname';
import { deviceName } from '../app/client';
import type { Event } from './merge';
import { Person } from '../kit/person';
import { Cause } from './logins';
import { Address } from './parts';

type Entry = Row<'/admin/audit'>;
type Login = Row<'/admin/login-history'>;

/** Audit actions that another list of the timeline shows with more detail. */
const toldBy: Record<string, string> = {
  LOGIN: 'login',
  USER_UPDATE_EMAIL: 'mail',
  DOCUMENT_UPLOAD: 'document',
  BLOCKAGE_ADD: 'blockage',
  USER_ROLE_ADD: 'role',
};

/**
 * An audit entry that repeats another event; it stays in the audit list. Transactions are so many that they have their
 * own kind.
 */
export function repeats({ kind, record }: Event, chosen: string[], id: string): boolean {
  if (kind !== 'audit' && kind !== 'act') return false;
  const { action, outcome, userId } = record as Entry;
  if (action === 'LEDGER_TRANSFER') return true;
  if (kind === 'act' && userId === id && chosen.includes('audit')) return true;
  const told = chosen.includes(toldBy[action] ?? '-');
  return told && (outcome === 'success' || action === 'LOGIN') && userId === id;
}

interface Look {
  icon: ComponentType<IconProps>;
  title: string;
  bad?: boolean;
  what?: ReactNode;
}

export function looks(event: Event, t: TFunction, said: (detail: string) => string): Look {
  switch (event.kind) {
    case 'login': {
      const l = event.record as Login;
      return {
        icon: IconLogin2,
        title: t(l.success ? 'story.login' : 'story.login.refused'),
        bad: !l.success,
        what: (
          <>
            {l.reason && (
              <>
                <Cause of={l} /> ·{' '}
              </>
            )}
            {l.countryName} <Address of={l.ipaddress} /> <bdi>{deviceName(l)}</bdi>
          </>
        ),
      };
    }
    case 'mail': {
      const m = event.record as Row<'/admin/get-email-change-history'>;
      return {
        icon: IconMail,
        title: t('story.mail'),
        what: (
          <>
            <del>
              <bdi dir="ltr">{m.oldEmail}</bdi>
            </del>{' '}
            <ins>
              <bdi dir="ltr">{m.newEmail}</bdi>
            </ins>{' '}
            {t('story.by')} <Person id={m.changedBy} bare />
          </>
        ),
      };
    }
    case 'document': {
      const d = event.record as Row<'/user/get-documents'>;
      return {
        icon: IconFile,
        title: t('story.document'),
        what: (
          <>
            <bdi>{d.name}</bdi> <Status of={d.reason} />
          </>
        ),
      };
    }
    case 'blockage': {
      const b = event.record as Row<'/blockage/get-blockage-history'>;
      return {
        icon: IconLock,
        title: t('story.blockage'),
        what: (
          <>
            <Money amount={String(b.amount)} unit={b.currencyCode} /> <Status of={b.status} />{' '}
            <bdi>{b.description}</bdi>
          </>
        ),
      };
    }
    case 'role': {
      const r = event.record as Row<'/admin/user-roles'>;
      return { icon: IconUserShield, title: t('story.role'), what: <bdi dir="ltr">{r.roleCode}</bdi> };
    }
    case 'movement': {
      const e = event.record as Entry;
      return {
        icon: IconCoins,
        title: t('story.movement'),
        bad: e.outcome === 'refused',
        what: (
          <>
            <Id of={e.target} short /> {t('story.by')} <Actor id={e.actorId} />
          </>
        ),
      };
    }
    default: {
      const e = event.record as Entry;
      const other = event.kind === 'act' ? e.userId : e.actorId;
      return {
        icon: event.kind === 'act' ? IconHistory : IconShield,
        title: actName(e.action, t),
        bad: e.outcome === 'refused',
        what: (
          <>
            {e.detail && <bdi>{said(e.detail)}</bdi>} {event.kind === 'act' ? t('story.to') : t('story.by')}{' '}
            <Actor id={other} /> {e.ip && <Address of={e.ip} />} {e.requestId && <Id of={e.requestId} short />}
          </>
        ),
      };
    }
  }
}

/** An account within a sentence, or the command line. */
function Actor({ id }: { id: string | null | undefined }) {
  const { t } = useTranslation();
  if (id?.startsWith('service:')) return <bdi dir="ltr">{id.slice('service:'.length)}</bdi>;
  return id === 'operator' ? t('story.operator') : <Person id={id} bare />;
}
