/** The changes of an account. */
import { Alert, Button, Group, Menu } from '@mantine/core';
import { IconChevronDown } from '@tabler/icons-react';
import { Link } from '@tanstack/react-router';
import { useState, type ComponentType } from 'react';
import { useTranslation } from 'react-i18next';
import { useMay } from '../app/session';
import { ItemLink } from '../app/frame/link';
import { useRead } from '../kit/read';
import { Write } from '../kit/write';
import { useDiallingCodes, useLevels, useStatuses } from './parts';
import type { User } from './bulk';
import { security } from './factors';
import type { TextKey } from '../text/key';

/** The paths that are read again after any change: the account, its lists and its timeline. */
const touches = [
  '/admin/list-users',
  '/admin/user/limit-info',
  security,
  '/admin/audit',
  '/admin/kyc-case',
  '/admin/get-email-change-history',
  'story',
];

const balance = 'POST /admin/transaction/adjust-balance';

interface Action {
  /** Its permission, without the method. */
  path: string;
  title: TextKey;
  Form: ComponentType<Of>;
}

const actions: Action[] = [
  { path: '/admin/user/close-user-authentication', title: 'user.status', Form: Standing },
  { path: '/admin/user/update-fullname', title: 'user.name', Form: Name },
  { path: '/admin/user/update-email', title: 'user.mail', Form: Mail },
  { path: '/admin/user/update-phonenumber', title: 'user.phone', Form: Phone },
  { path: '/level/update-level', title: 'user.level', Form: Level },
  { path: '/user/update-confirmed', title: 'user.address', Form: AddressProof },
];

const closed = (user: User) => user.status !== 'active';

/**
 * One primary action, and the others in a menu. A waiting identity comes first, then the status; without permission for
 * both, the first permitted change. The forms read their lists when the menu or a form opens first.
 */
export function Actions({ user }: { user: User }) {
  const { t } = useTranslation();
  const may = useMay();
  const [open, setOpen] = useState('');
  const [used, setUsed] = useState(false);
  const mine = actions.filter((a) => may(`POST ${a.path}`));
  const review =
    may('POST /user/update-kyc') && may('GET /user/get-documents') && may('GET /user/get-kyc-images')
      ? `/kyc/${user.userId}`
      : undefined;
  const first = !closed(user) && review && !user.kycConfirm ? undefined : mine[0];
  const others = mine.filter((a) => a !== first);
  const title = (a: Action) => t(a.Form === Standing && closed(user) ? 'user.lift' : a.title);
  const adjust = may(balance);
  return (
    <Group gap="xs" className="customer-acts">
      {first && (
        <Button
          onClick={() => {
            setUsed(true);
            setOpen(first.path);
          }}
          data-testid={`write-${first.path}`}
        >
          {title(first)}
        </Button>
      )}
      {!first && review && (
        <Button component={Link} to={review} data-testid="review">
          {t('user.review')}
        </Button>
      )}
      {(others.length > 0 || (first && review) || adjust) && (
        <Menu position="bottom-end" onOpen={() => setUsed(true)}>
          <Menu.Target>
            <Button variant="default" rightSection={<IconChevronDown size={16} />} data-testid="more">
              {t('user.more')}
            </Button>
          </Menu.Target>
          <Menu.Dropdown>
            {others.map((a) => (
              <Menu.Item key={a.path} onClick={() => setOpen(a.path)} data-testid={`write-${a.path}`}>
                {title(a)}
              </Menu.Item>
            ))}
            {(adjust || (first && review)) && others.length > 0 && <Menu.Divider />}
            {first && review && (
              <Menu.Item component={Link} to={review}>
                {t('kyc.case')}
              </Menu.Item>
            )}
            {adjust && (
              <ItemLink to="/adjust" search={{ userId: user.userId }}>
                {t('money.adjust')}
              </ItemLink>
            )}
          </Menu.Dropdown>
        </Menu>
      )}
      {used &&
        mine.map(({ path, Form }) => <Form key={path} user={user} shown={open === path} close={() => setOpen('')} />)}
    </Group>
  );
}

interface Of {
  user: User;
  shown: boolean;
  close: () => void;
}

/** The service has only the full name: its last word is the default surname. */
function Name({ user, shown, close }: Of) {
  const words = user.fullName.split(' ');
  const surname = words.length > 1 ? (words.pop() ?? '') : '';
  return (
    <Write
      method="post"
      path="/admin/user/update-fullname"
      title="user.name"
      touches={touches}
      opened={shown}
      onClose={close}
      fixed={{ userId: user.userId }}
      initial={{ name: words.join(' '), surname }}
      fields={[
        { name: 'name', title: 'user.firstName', required: true },
        { name: 'surname', title: 'user.surname', required: true },
      ]}
    />
  );
}

function Mail({ user, shown, close }: Of) {
  const { t } = useTranslation();
  return (
    <Write
      method="post"
      path="/admin/user/update-email"
      title="user.mail"
      touches={touches}
      opened={shown}
      onClose={close}
      fixed={{ userId: user.userId }}
      initial={{ mailAddress: user.email }}
      fields={[{ name: 'mailAddress', title: 'users.email', required: true }]}
      before={() => <Alert color="yellow">{t('user.mail.effect')}</Alert>}
    />
  );
}

function Phone({ user, shown, close }: Of) {
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
      opened={shown}
      onClose={close}
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

function Level({ user, shown, close }: Of) {
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
      opened={shown}
      onClose={close}
      fixed={{ userId: user.userId }}
      initial={now.data ? { levelId: String(now.data.levelId) } : {}}
      fields={[{ name: 'levelId', title: 'user.level.name', required: true, kind: levels.length ? levels : 'text' }]}
    />
  );
}

function Standing({ user, shown, close }: Of) {
  const { t } = useTranslation();
  const statuses = useStatuses();
  return (
    <Write
      method="post"
      path="/admin/user/close-user-authentication"
      title={closed(user) ? 'user.lift' : 'user.status'}
      touches={touches}
      opened={shown}
      onClose={close}
      fixed={{ userId: user.userId }}
      initial={{ status: closed(user) ? 'active' : user.status }}
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

function AddressProof({ user, shown, close }: Of) {
  const { t } = useTranslation();
  const decisions = (['manuelApproved', 'rejected', 'waitingApproval'] as const).map((value) => ({
    value,
    label: t(`user.address.${value}`),
  }));
  return (
    <Write
      method="post"
      path="/user/update-confirmed"
      title="user.address"
      touches={[...touches, '/user/get-documents']}
      opened={shown}
      onClose={close}
      fixed={{ userId: user.userId }}
      fields={[
        { name: 'addressConfirmed', title: 'user.address.decision', required: true, kind: decisions },
        { name: 'addressDescription', title: 'user.reason', kind: 'area' },
      ]}
      before={() => <Alert color="gray">{t('user.address.effect')}</Alert>}
    />
  );
}
