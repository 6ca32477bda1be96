/** The form that makes a blocked account active again, from the palette. */
import { Named } from '../../kit/person';
import { Diff } from '../../kit/record';
import { Write } from '../../kit/write';
import type { Schemas } from '../api';
import { useTranslation } from 'react-i18next';

export default function Lift({ user, onClose }: { user: Schemas['UserListItem']; onClose: () => void }) {
  const { t } = useTranslation();
  const named = (status: string) => ({ [t('palette.status')]: t(`state.${status}`, { defaultValue: status }) });
  return (
    <Write
      method="post"
      path="/admin/user/close-user-authentication"
      title="palette.lift"
      touches={['/admin/list-users', '/admin/audit', 'story']}
      opened
      onClose={onClose}
      fixed={{ userId: user.userId, status: 'active' }}
      fields={[{ name: 'description', title: 'palette.reason', kind: 'area' }]}
      before={() => (
        <>
          <Named name={user.fullName} contact={user.email || user.phoneNumber} />
          <Diff before={named(user.status)} after={named('active')} />
        </>
      )}
    />
  );
}
