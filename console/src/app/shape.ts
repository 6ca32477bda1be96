/** What the objects of the parameters must look like. The service judges them; this tells it beforehand. */

/** Key of the words for the shape of a parameter that the service reads, by code (domain/kit/parameter). */
export const shapes: Record<string, string> = {
  USER_STATUS: 'parameter.codes',
  USER_TYPE: 'parameter.codes',
  DOCUMENT_STATUS: 'parameter.codes',
  DOCUMENT_REASON: 'parameter.codes',
  DOCUMENT_TYPE: 'parameter.codes',
  CDN: 'parameter.folders',
  AMLCONTROL: 'parameter.ignored',
  TREASURY: 'parameter.addresses',
  WITHDRAWAL_FEE: 'parameter.fees',
  WITHDRAWAL_MINIMUM: 'parameter.minimums',
  EXPLORER: 'parameter.explorers',
  NOTIFICATION_TOPICS: 'parameter.topics',
  EXPLANATION: 'parameter.length',
  KYC_LEVEL: 'parameter.level',
};

/** Parameters that are a table, and the sheet of the screen for fees that has them. */
export const sheets: Record<string, string> = {
  WITHDRAWAL_FEE: 'fees',
  WITHDRAWAL_MINIMUM: 'minimums',
  TREASURY: 'treasury',
  EXPLORER: 'explorers',
};

/** The name of the one list of texts that an object is, if it is one. */
export function asList(object: Record<string, unknown>): string | undefined {
  const [[name, value] = ['', undefined], ...more] = Object.entries(object);
  return more.length === 0 && Array.isArray(value) && value.every((one) => typeof one === 'string') ? name : undefined;
}
