/** The data of the served page: its nonce, and the address of the token worker. */
function meta(name: string): HTMLMetaElement | null {
  return document.querySelector(`meta[name="${name}"]`);
}

export const nonce = meta('castellan-nonce')?.nonce ?? '';
export const worker = meta('castellan-tokens')?.content;
/** The base path of the service: "" or, for example, "/castellan". */
export const base = worker?.replace(/\/console\/.*$/, '') ?? '';
/** 'development' or 'production'. */
export const mode = meta('castellan-mode')?.content ?? '';
export const version = meta('castellan-version')?.content ?? '';

interface TrustedTypes {
  createPolicy(name: string, rules: object): unknown;
}

/**
 * The one policy of Trusted Types. Mantine writes its style rules as HTML of a style element: text without a tag
 * passes, nothing else. The only script is the token worker.
 */
export function trust(): void {
  // The scroll lock below a drawer writes its own style element and takes the nonce from here.
  (globalThis as { __webpack_nonce__?: string }).__webpack_nonce__ = nonce;
  (globalThis as { trustedTypes?: TrustedTypes }).trustedTypes?.createPolicy('default', {
    createHTML: (text: string) => (text.includes('<') ? null : text),
    createScriptURL: (url: string) => (url === worker ? url : null),
  });
}
