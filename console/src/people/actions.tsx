/** The changes of an account. */
import { Alert, Group } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { useMay } from '../app/session';
import { useRead } from '../kit/read';
import { Write } from '../kit/write';
import { useDiallingCodes, useLevels, useStatuses } from './parts';
import type { User } from './bulk';

/** The paths that are read again after any change: the account, its lists and its timeline. */
const touches = [
  '/admin/list-users',
  '/admin/user/limit-info',
  '/admin/audit',
  '/admin/get-email-change-history',
  'story',
];

export function Actions({ user }: { user: User }) {
  return (
    <Group gap="xs">
      <Name user={user} />
      <Mail user={user} />
      <Phone user={user} />
      <Level user={user} />
      <Standing user={user} />
      <AddressProof user={user} />
    </Group>
  );
}

interface Of {
  user: User;
}

/** The service has only the full name: its last word is the default surname. */
function Name({ user }: Of) {
  const words = user.fullName.split(' ');
  const surname = words.length > 1 ? (words.pop() ?? '') : '';
  return (
    <Write
      method="post"
      path="/admin/user/update-fullname"
      title="user.name"
      touches={touches}
      fixed={{ userId: user.userId }}
      initial={{ name: words.join(' '), surname }}
      fields={[
        { name: 'name', title: 'user.firstName', required: true },
        { name: 'surname', title: 'user.surname', required: true },
      ]}
    />
  );
}

function Mail({ user }: Of) {
  const { t } = useTranslation();
  return (
    <Write
      method="post"
      path="/admin/user/update-email"
      title="user.mail"
      touches={touches}
      fixed={{ userId: user.userId }}
      initial={{ mailAddress: user.email }}
      fields={[{ name: 'mailAddress', title: 'users.email', required: true }]}
      before={() => <Alert color="yellow">{t('user.mail.effect')}</Alert>}
    />
  );
}

function Phone({ user }: Of) {
  const { t } = useTranslation();
  const codes = useDiallingCodes();
  const digits = user.phoneNumber.replace(/^\+/, '');
  const code =
    codes
      .map((c) => c.value)
      .filter((c) => digits.startsWith(c))
      .sort((a, b) => b.length - a.length)[0] ?? '';
  return (
    <Write
      method="post"
      path="/admin/user/update-phonenumber"
      title="user.phone"
      touches={touches}
      fixed={{ userId: user.userId }}
      initial={{ countryCode: code, phoneNum: digits.slice(code.length) }}
      fields={[
        { name: 'countryCode', title: 'login.countryCode', required: true, kind: codes.length ? codes : 'text' },
        { name: 'phoneNum', title: 'users.phone', required: true, help: 'user.phone.help' },
      ]}
      before={() => <Alert color="yellow">{t('user.phone.effect')}</Alert>}
    />
  );
}

function Level({ user }: Of) {
  const may = useMay();
  const levels = useLevels();
  const now = useRead(
    '/admin/user/limit-info',
    { userId: user.userId },
    { enabled: may('GET /admin/user/limit-info') && may('POST /level/update-level') },
  );
  return (
    <Write
      method="post"
      path="/level/update-level"
      title="user.level"
      touches={touches}
      fixed={{ userId: user.userId }}
      initial={now.data ? { levelId: String(now.data.levelId) } : {}}
      fields={[{ name: 'levelId', title: 'user.level.name', required: true, kind: levels.length ? levels : 'text' }]}
    />
  );
}

function Standing({ user }: Of) {
  const { t } = useTranslation();
  const statuses = useStatuses();
  return (
    <Write
      method="post"
      path="/admin/user/close-user-authentication"
      title="user.status"
      touches={touches}
      fixed={{ userId: user.userId }}
      initial={{ status: user.status }}
      fields={[
        { name: 'status', title: 'users.status', required: true, kind: statuses.length ? statuses : 'text' },
        { name: 'closedUserReason', title: 'user.reason' },
        { name: 'description', title: 'user.description', kind: 'area' },
      ]}
      before={(values) =>
        values.status !== user.status && (
          <Alert color="yellow">{t(values.status === 'active' ? 'user.status.opens' : 'user.status.effect')}</Alert>
        )
      }
    />
  );
}

function AddressProof({ user }: Of) {
  const { t } = useTranslation();
  const decisions = ['manuelApproved', 'rejected', 'waitingApproval'].map((value) => ({
    value,
    label: t(`user.address.${value}`),
  }));
  return (
    <Write
      method="post"
      path="/user/update-confirmed"
      title="user.address"
      touches={[...touches, '/user/get-documents']}
      fixed={{ userId: user.userId }}
      fields={[
        { name: 'addressConfirmed', title: 'user.address.decision', required: true, kind: decisions },
        { name: 'addressDescription', title: 'user.reason', kind: 'area' },
      ]}
      before={() => <Alert color="gray">{t('user.address.effect')}</Alert>}
    />
  );
}
