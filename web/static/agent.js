/** The name of a browser as people know it, from what it calls itself. */

const BROWSERS = { Edg: 'Edge', OPR: 'Opera', Firefox: 'Firefox', Chrome: 'Chrome', Safari: 'Safari' };
const SYSTEMS = { iPhone: 'iPhone', iPad: 'iPad', Android: 'Android', Windows: 'Windows', 'Mac OS X': 'macOS', Linux: 'Linux' };

/** @param {string} [agent] a User-Agent @returns {{browser: string, system: string}} empty where it is none of the usual */
export function agentOf(agent = navigator.userAgent) {
  const browser = Object.keys(BROWSERS).find((name) => agent.includes(`${name}/`));
  const system = Object.keys(SYSTEMS).find((name) => agent.includes(name));
  return { browser: BROWSERS[browser] ?? '', system: SYSTEMS[system] ?? '' };
}

/** What to show for a device's description: a browser's name instead of the long line in which it calls itself. */
export function shortened(description) {
  if (!/^Mozilla\/5\.0 /.test(description ?? '')) return description;
  const { browser, system } = agentOf(description);
  return [browser, system].filter(Boolean).join(' · ') || description;
}
