/**
 * Shows HTML of the service without inserting it into the page. It is parsed here and becomes React elements of a
 * short list of names, without style, class, id or script. The service cleans stored HTML (SEC-36). This preview shows
 * it before that, and can only show text.
 */
import { Code } from '@mantine/core';
import { createElement, Fragment, type CSSProperties, type ReactNode } from 'react';

interface Element {
  tag: string;
  attributes: Record<string, string>;
  children: (Element | string)[];
}

const token = /<!--[\s\S]*?(?:-->|$)|<\/?([a-zA-Z][a-zA-Z0-9]*)((?:"[^"]*"|'[^']*'|[^>"'])*)>|[^<]+|</g;
const attribute = /([a-zA-Z-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))/g;
const empty = new Set(['br', 'hr', 'img', 'wbr', 'col']);
const silent = new Set(['script', 'style', 'iframe', 'noscript', 'template', 'object', 'textarea', 'title', 'select']);
const closesParagraph = new Set([
  'p',
  'div',
  'section',
  'article',
  'ul',
  'ol',
  'table',
  'blockquote',
  'pre',
  'figure',
  'hr',
  'h1',
  'h2',
  'h3',
  'h4',
  'h5',
  'h6',
]);
const named: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: '\u00a0' };

function decoded(text: string): string {
  return text.replaceAll(
    /&(?:#(\d{1,7})|#x([\da-f]{1,6})|([a-z]+));/gi,
    (whole, ten?: string, hex?: string, name?: string) => {
      if (name) return named[name.toLowerCase()] ?? whole;
      const point = ten ? +ten : +`0x${hex}`;
      return point > 0 && point <= 0x10ffff ? String.fromCodePoint(point) : whole;
    },
  );
}

/** Parses HTML as far as a preview needs it: an unclosed tag ends with its parent. */
export function parse(html: string): Element {
  const root: Element = { tag: '', attributes: {}, children: [] };
  const open = [root];
  let mute = '';
  for (const [text, name, rest] of html.matchAll(token)) {
    const tag = name?.toLowerCase() ?? '';
    const ends = text.startsWith('</');
    if (mute) {
      if (ends && tag === mute) mute = '';
    } else if (!tag) {
      if (!text.startsWith('<!--')) open.at(-1)!.children.push(decoded(text));
    } else if (ends) {
      const at = open.findLastIndex((e) => e.tag === tag);
      if (at > 0) open.length = at;
    } else if (silent.has(tag)) {
      mute = tag;
    } else {
      if (closesParagraph.has(tag) && open.at(-1)!.tag === 'p') open.pop();
      if (tag === 'li' && open.at(-1)!.tag === 'li') open.pop();
      const element: Element = { tag, attributes: {}, children: [] };
      for (const [, key, a, b, c] of (rest ?? '').matchAll(attribute)) {
        element.attributes[key!.toLowerCase()] = decoded(a ?? b ?? c ?? '');
      }
      open.at(-1)!.children.push(element);
      if (!empty.has(tag)) open.push(element);
    }
  }
  return root;
}

const plain = new Set([
  'article',
  'aside',
  'blockquote',
  'div',
  'figcaption',
  'figure',
  'p',
  'section',
  'span',
  'abbr',
  'b',
  'bdi',
  'bdo',
  'cite',
  'code',
  'del',
  'dfn',
  'em',
  'i',
  'ins',
  'kbd',
  'mark',
  'pre',
  'q',
  's',
  'samp',
  'small',
  'strong',
  'sub',
  'sup',
  'u',
  'var',
  'ul',
  'ol',
  'li',
  'dl',
  'dt',
  'dd',
  'table',
  'caption',
  'thead',
  'tbody',
  'tfoot',
  'tr',
  'td',
  'th',
  'br',
  'hr',
  'wbr',
]);
/** Headings of a text are not headings of the page. */
const sizes: Record<string, string> = { h1: '1.5em', h2: '1.3em', h3: '1.15em', h4: '1em', h5: '1em', h6: '1em' };
const borders: CSSProperties = { border: '1px solid var(--mantine-color-default-border)', padding: 4 };

function shown(node: Element | string, key: number): ReactNode {
  if (typeof node === 'string') return node;
  const { tag, attributes } = node;
  const children = node.children.map(shown);
  const dir = /^(rtl|ltr|auto)$/i.test(attributes.dir ?? '') ? attributes.dir : undefined;
  if (tag in sizes) {
    return (
      <div key={key} dir={dir} style={{ fontWeight: 700, fontSize: sizes[tag], marginBlock: '0.6em' }}>
        {children}
      </div>
    );
  }
  if (tag === 'a' && /^(https?:|mailto:)/i.test(attributes.href ?? '')) {
    return (
      <a
        key={key}
        href={attributes.href}
        rel="nofollow noreferrer"
        target="_blank"
        style={{ color: 'inherit', textDecoration: 'underline' }}
      >
        {children}
      </a>
    );
  }
  if (tag === 'img') return <Shown key={key} address={attributes.src ?? ''} alt={attributes.alt ?? ''} />;
  if (!plain.has(tag)) return <Fragment key={key}>{children}</Fragment>;
  if (empty.has(tag)) return createElement(tag, { key });
  const cell = tag === 'td' || tag === 'th';
  return createElement(tag, { key, dir, ...(cell ? { style: borders } : {}) }, ...children);
}

/** An image of this service. Other images are shown as a URL, because the policy of the page blocks them. */
export function Shown({ address, alt }: { address: string; alt: string }) {
  const url = URL.canParse(address, location.origin) ? new URL(address, location.origin) : undefined;
  if (url?.protocol !== 'data:' && url?.origin !== location.origin) return <Code dir="ltr">{address}</Code>;
  return <img src={url.href} alt={alt} style={{ maxWidth: '100%' }} />;
}

export function RichText({ html, dir = 'auto' }: { html: string; dir?: 'auto' | 'rtl' | 'ltr' }) {
  return (
    <div dir={dir} data-testid="richtext" style={{ overflowWrap: 'anywhere' }}>
      {parse(html).children.map(shown)}
    </div>
  );
}
