/** Shared parts of the account screens: choices and links to an account. */
import { useTranslation } from 'react-i18next';
import { useMay } from '../app/session';
import { AnchorLink } from '../app/frame/link';
import { Nothing, Status } from '../kit/show';
import { useRead } from '../kit/read';
import type { Option } from '../kit/write';
import { numberedLevel } from '../kit/word';

/** The statuses of accounts, named in the user's language. */
export function useStatuses(): Option[] {
  const may = useMay();
  const path = '/user/total-count-by-status';
  const { data } = useRead(path, undefined, { enabled: may(`GET ${path}`) });
  return (data ?? []).map((s) => ({ value: s.statusCode, label: s.statusName }));
}

/** The status of an account, named in the user's language. */
export function Standing({ of }: { of?: string }) {
  const name = useStatuses().find((s) => s.value === of)?.label;
  return <Status of={of} name={name} />;
}

export function useLevels(): Option[] {
  const { t } = useTranslation();
  const may = useMay();
  const path = '/admin/levels-info';
  const { data } = useRead(path, undefined, { enabled: may(`GET ${path}`) });
  return (data ?? []).map((l) => ({ value: String(l.levelId), label: numberedLevel(l, t) }));
}

/** The dialling codes, each once, with its countries. */
export function useDiallingCodes(): Option[] {
  const may = useMay();
  const path = '/admin/get-country-list';
  const { data } = useRead(path, undefined, { enabled: may(`GET ${path}`) });
  const names = new Map<string, string[]>();
  for (const { phoneCode, countryName } of data ?? []) {
    if (phoneCode) names.set(phoneCode, [...(names.get(phoneCode) ?? []), countryName]);
  }
  return [...names].map(([value, of]) => ({
    value,
    label: `+${value} ${of.slice(0, 3).join(', ')}${of.length > 3 ? '…' : ''}`,
  }));
}

/** An IP address with a link to all its logins. */
export function Address({ of }: { of?: string | null }) {
  const may = useMay();
  if (!of) return <Nothing />;
  if (!may('GET /admin/login-history-v2')) return <bdi dir="ltr">{of}</bdi>;
  return (
    <AnchorLink
      to="/users/logins"
      search={{ ipaddress: of }}
      size="sm"
      dir="ltr"
      onClick={(event) => event.stopPropagation()}
    >
      {of}
    </AnchorLink>
  );
}
