/** A user of a company: the forms that add and change one. */
import type { Schemas } from '../app/api';
import type { Row } from '../kit/list';
import { Write } from '../kit/write';
import { useDiallingCodes } from './parts';

export const members = '/admin/get-corporate-users';
export type Member = Row<typeof members>;

const touches = [members];

export function InsertMember({ initial }: { initial: Partial<Schemas['InsertCorporateUserRequest']> }) {
  const codes = useDiallingCodes();
  return (
    <Write
      method="post"
      path="/admin/insert-corporate-user"
      title="corporate.insert"
      touches={touches}
      initial={initial}
      button={{ w: 'fit-content' }}
      fields={[
        { name: 'corporateUserId', title: 'corporate.company', required: true },
        { name: 'userId', title: 'audit.user', help: 'corporate.user.help' },
        { name: 'role', title: 'user.role', required: true },
        { name: 'status', title: 'users.status', required: true },
        { name: 'countryCode', title: 'login.countryCode', required: true, kind: codes.length ? codes : 'text' },
        { name: 'phoneNumber', title: 'users.phone', required: true },
        { name: 'email', title: 'users.email', required: true },
      ]}
    />
  );
}

/** Sends only the changed fields. */
export function UpdateMember({ of, onDone }: { of: Member; onDone: () => void }) {
  const codes = useDiallingCodes();
  return (
    <Write
      method="post"
      path="/admin/update-corporate-user"
      title="corporate.update"
      touches={touches}
      fixed={{ id: of.id }}
      onDone={onDone}
      button={{ w: 'fit-content' }}
      initial={{ corporateUserId: of.corporateUserId, role: of.role, status: of.status, email: of.email }}
      make={(values) => {
        const changed = Object.entries(values).filter(
          ([name, value]) => name === 'id' || value !== of[name as keyof Member],
        );
        if (of.email && !values.email) changed.push(['email', null]);
        return Object.fromEntries(changed) as Schemas['UpdateCorporateUserRequest'];
      }}
      fields={[
        { name: 'corporateUserId', title: 'corporate.company' },
        { name: 'role', title: 'user.role' },
        { name: 'status', title: 'users.status' },
        { name: 'email', title: 'users.email' },
        {
          name: 'countryCode',
          title: 'login.countryCode',
          kind: codes.length ? codes : 'text',
          help: 'corporate.keep',
        },
        { name: 'phoneNumber', title: 'users.phone', help: 'corporate.keep' },
      ]}
    />
  );
}
