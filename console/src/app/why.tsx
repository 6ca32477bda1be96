/**
 * "Why?" beside a refusal or a challenge: to the explanation with the inputs of that request (the firewall's or the
 * policies'). It opens beside this page, so that what was typed here stays.
 */
import { useRead } from '../kit/read';
import { Why } from '../kit/why';
import { useMay, useSession } from './session';

const byFirewall = new Set(['RATE_LIMITED', 'ACCESS_DENIED', 'GEO_BLOCKED', 'IP_NOT_ALLOWED', 'FORBIDDEN']);
const byFactor = new Set([
  'MFA_NOT_AVAILABLE',
  'METHOD_LOCKED',
  'METHOD_EXPIRED',
  'CHALLENGE_EXPIRED',
  'CHALLENGE_CLOSED',
]);

/** asked is the endpoint; without a code of a refusal it is the challenge that is asked about. */
export default function WhyOf({ asked, code }: { asked: string; code?: string }) {
  const may = useMay();
  const { token, userId, guards } = useSession();
  const action = !code || byFactor.has(code) ? guards?.get(asked) : undefined;
  const resource = code && byFirewall.has(code) ? asked : undefined;
  const shown =
    !!token &&
    ((action && may('POST /admin/system/mfa/explain')) || (resource && may('POST /admin/system/waf/explain')));
  // From where one asks is known of one's session.
  const sessions = useRead('/auth/sessions', undefined, { enabled: !!shown });
  const ip = sessions.data?.find((s) => s.current)?.ip;
  if (!shown) return null;
  return <Why action={action} resource={resource} code={code} userId={userId} ip={ip} aside />;
}
