/**
 * "Why?" beside a refusal or a challenge: a link to the explanation with the inputs of that request (of the firewall
 * or the policies). It opens in a new tab, so that the input on this page is kept.
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

/** asked is the endpoint. Without the code of a refusal, the challenge is explained. */
export default function WhyOf({ asked, code }: { asked: string; code?: string }) {
  const may = useMay();
  const { token, userId, guards } = useSession();
  const action = !code || byFactor.has(code) ? guards?.get(asked) : undefined;
  const resource = code && byFirewall.has(code) ? asked : undefined;
  const shown =
    !!token &&
    ((action && may('POST /admin/system/mfa/explain')) || (resource && may('POST /admin/system/waf/explain')));
  // The address and country of the caller come from the caller's session.
  const sessions = useRead('/auth/sessions', undefined, { enabled: !!shown });
  const ip = sessions.data?.find((s) => s.current)?.ip;
  if (!shown) return null;
  return <Why action={action} resource={resource} code={code} userId={userId} ip={ip} aside />;
}
