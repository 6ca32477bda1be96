/** The countries from which the account may be used. Each change needs a challenge, and ends every session. */

import { $, h, busy } from './dom.js';
import { t, language } from './texts.js';

const PATH = '/user/geofilter/countries';

/** ISO 3166-1 alpha-2, all of them. */
export const CODES = ('ADAEAFAGAIALAMAOAQARASATAUAWAXAZBABBBDBEBFBGBHBIBJBLBMBNBOBQBRBSBTBVBWBYBZCACCCDCFCGCHCICKCLCMCNCOCRCUCVCWCXCYCZDEDJDKDMDODZECEEEG'
  + 'EHERESETFIFJFKFMFOFRGAGBGDGEGFGGGHGIGLGMGNGPGQGRGSGTGUGWGYHKHMHNHRHTHUIDIEILIMINIOIQIRISITJEJMJOJPKEKGKHKIKMKNKPKRKWKYKZLALBLCLILKLRLSLTLULV'
  + 'LYMAMCMDMEMFMGMHMKMLMMMNMOMPMQMRMSMTMUMVMWMXMYMZNANCNENFNGNINLNONPNRNUNZOMPAPEPFPGPHPKPLPMPNPRPSPTPWPYQARERORSRURWSASBSCSDSESGSHSISJSKSLSMSN'
  + 'SOSRSSSTSVSXSYSZTCTDTFTGTHTJTKTLTMTNTOTRTTTVTWTZUAUGUMUSUYUZVAVCVEVGVIVNVUWFWSYEYTZAZMZW').match(/../g);

export class Countries {
  #page; #list;

  /** @param page see app.js */
  constructor(page) {
    this.#page = page;
    $('country-form').addEventListener('submit', (event) => {
      event.preventDefault();
      busy(event.target.querySelector('button'), () => this.#change('whatCountry', 'POST', $('country').value, event.target));
    });
    document.addEventListener('languagechanged', () => { this.#offer(); this.#draw(); });
    this.#offer();
  }

  /** Clears the account's list. */
  clear() {
    this.#list = undefined;
    this.#draw();
  }

  async refresh() {
    const list = await this.#page.read(PATH);
    if (!list) return;
    this.#list = list;
    this.#draw();
  }

  #offer() {
    const names = new Intl.DisplayNames(language(), { type: 'region' });
    const chosen = $('country').value || 'TR';
    const options = CODES.map((code) => [code, names.of(code)]).sort(([, a], [, b]) => a.localeCompare(b, language()));
    $('country').replaceChildren(...options.map(([code, name]) => h('option', { value: code }, name)));
    $('country').value = chosen;
  }

  async #change(what, method, countryCode, form) {
    const outcome = await this.#page.verify(what, () => this.#page.client.start(method, PATH, { countryCode }), form);
    if (outcome) this.#page.leave('countriesChanged');
  }

  #draw() {
    $('countries-empty').hidden = this.#list?.length !== 0; // unread is not empty
    $('countries').replaceChildren(...(this.#list ?? []).map(({ countryCode, countryName }) => h('li', { class: 'row', dataset: { testid: 'country-item', code: countryCode } },
      h('p', { class: 'row-name' },
        // The service's own copy: flagImage may have another address, which this page's policy does not load from.
        h('img', { class: 'flag', src: new URL(`flags/${countryCode}.svg`, this.#page.base).href, alt: '', width: 30, height: 20 }),
        h('bdi', {}, countryName), h('code', { dir: 'ltr' }, countryCode)),
      h('button', {
        type: 'button', class: 'small danger', 'aria-label': `${t('remove')}: ${countryName}`, dataset: { testid: 'country-remove' },
        on: { click: (event) => busy(event.currentTarget, () => this.#change('whatCountryOff', 'DELETE', countryCode)) },
      }, t('remove')))));
  }
}
