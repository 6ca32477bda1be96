/** The common name of a browser, from its User-Agent. */

const BROWSERS = { Edg: 'Edge', OPR: 'Opera', Firefox: 'Firefox', Chrome: 'Chrome', Safari: 'Safari' };
const SYSTEMS = { iPhone: 'iPhone', iPad: 'iPad', Android: 'Android', Windows: 'Windows', 'Mac OS X': 'macOS', Linux: 'Linux' };

/** @param {string} [agent] a User-Agent @returns {{browser: string, system: string}} empty for an unknown browser */
export function agentOf(agent = navigator.userAgent) {
  const browser = Object.keys(BROWSERS).find((name) => agent.includes(`${name}/`));
  const system = Object.keys(SYSTEMS).find((name) => agent.includes(name));
  return { browser: BROWSERS[browser] ?? '', system: SYSTEMS[system] ?? '' };
}
