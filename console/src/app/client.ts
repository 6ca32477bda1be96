/** Names of browsers in the text that a browser sends about itself. The first one found counts. */
const browsers = [
  ['Edg', 'Edge'],
  ['OPR', 'Opera'],
  ['Firefox', 'Firefox'],
  ['HeadlessChrome', 'Chrome'],
  ['Chrome', 'Chrome'],
  ['CriOS', 'Chrome'],
  ['Version', 'Safari'],
] as const;

const systems = [
  ['Android', 'Android'],
  ['iPhone', 'iPhone'],
  ['iPad', 'iPad'],
  ['Windows', 'Windows'],
  ['Mac OS X', 'macOS'],
  ['Linux', 'Linux'],
] as const;

interface Device {
  deviceBrand?: string | null;
  deviceModel?: string | null;
  deviceDesc?: string | null;
}

/** A device in few words: "Chrome 148, Linux" for a browser, brand and model of a phone, otherwise its description. */
export function deviceName({ deviceBrand, deviceModel, deviceDesc }: Device): string {
  const made = [deviceBrand, deviceModel].filter(Boolean).join(' ');
  if (made || !deviceDesc?.startsWith('Mozilla/')) return made || (deviceDesc ?? '');
  for (const [word, name] of browsers) {
    const version = new RegExp(`\\b${word}/(\\d+)`).exec(deviceDesc)?.[1];
    if (!version) continue;
    const system = systems.find(([part]) => deviceDesc.includes(part))?.[1];
    return [`${name} ${version}`, system].filter(Boolean).join(', ');
  }
  return deviceDesc;
}
