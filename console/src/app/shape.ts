/** The required form of parameter objects. The service validates them; these texts describe the form beforehand. */
import type { TextKey } from '../text/key';

/** Key of the text for the form of a parameter, by code (domain/kit/parameter). */
export const shapes: Record<string, TextKey> = {
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

/** Parameters that are a table, and the sheet of the fees screen for each. */
export const sheets: Record<string, string> = {
  WITHDRAWAL_FEE: 'fees',
  WITHDRAWAL_MINIMUM: 'minimums',
  TREASURY: 'treasury',
  EXPLORER: 'explorers',
};

/** The name of the only member of an object, if that is a list of texts. */
export function asList(object: Record<string, unknown>): string | undefined {
  const [[name, value] = ['', undefined], ...more] = Object.entries(object);
  return more.length === 0 && Array.isArray(value) && value.every((one) => typeof one === 'string') ? name : undefined;
}
