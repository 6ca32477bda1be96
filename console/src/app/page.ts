/** What the page that Go served says: its nonce, and where the worker of the tokens is. */
function meta(name: string): HTMLMetaElement | null {
  return document.querySelector(`meta[name="${name}"]`);
}

export const nonce = meta('castellan-nonce')?.nonce ?? '';
export const worker = meta('castellan-tokens')?.content;
/** Where the service begins, when it does not at the top of its host: "" or "/castellan". */
export const base = worker?.replace(/\/console\/.*$/, '') ?? '';
export const version = meta('castellan-version')?.content ?? '';

interface TrustedTypes {
  createPolicy(name: string, rules: object): unknown;
}

/**
 * The one policy of Trusted Types. Mantine writes the rules of its styles as HTML of a style element: text without a
 * tag passes, nothing else. A script may be the worker of the tokens only.
 */
export function trust(): void {
  // What keeps the page from scrolling below a drawer writes a style element of its own, and asks for the nonce here.
  (globalThis as { __webpack_nonce__?: string }).__webpack_nonce__ = nonce;
  (globalThis as { trustedTypes?: TrustedTypes }).trustedTypes?.createPolicy('default', {
    createHTML: (text: string) => (text.includes('<') ? null : text),
    createScriptURL: (url: string) => (url === worker ? url : null),
  });
}
