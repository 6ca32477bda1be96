/** The claims of a token, for reading only: nothing here verifies them. */
interface Claims {
  sub?: string;
  sid?: string;
  iat?: number;
  exp?: number;
  cnf?: object;
}

export function claims(token: string): Claims {
  try {
    const part = token.split('.')[1]!.replaceAll('-', '+').replaceAll('_', '/');
    return JSON.parse(atob(part)) as Claims;
  } catch {
    return {};
  }
}

/** Why a session ends: no activity, a token that the service refused, or a logout. */
export type Cause = 'idle' | 'over' | 'left';

/**
 * Whether the end of one token ends another one. A refusal concerns the refused token only. Any other end concerns the
 * session, which may have got a new token in another tab at the same moment.
 */
export function endsToken(end: string, why: Cause, token: string): boolean {
  const { sid } = claims(token);
  return end === token || (why !== 'over' && sid !== undefined && claims(end).sid === sid);
}
