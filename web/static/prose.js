/** Texts of the interface documents. They are written in English with a little CommonMark: paragraphs separated by an
 *  empty line, lists of lines that begin with "- ", and `code`. A line break inside a paragraph is only a space. */

import { h } from './dom.js';

/** The attributes of English text on a page of another language and direction. */
export const ENGLISH = { lang: 'en', dir: 'ltr' };

const inline = (text) => text.split('`').map((piece, i) => (i % 2 ? h('code', {}, piece) : piece));

const isItem = (line) => /^\s*[-*] /.test(line);

/** The lines of a list as its items; a line without a marker continues the previous item. */
function items(lines) {
  const list = [];
  for (const line of lines) {
    if (isItem(line)) list.push(line.replace(/^\s*[-*] /, ''));
    else list.push(`${list.pop()} ${line.trim()}`);
  }
  return h('ul', { class: 'prose-list' }, list.map((item) => h('li', {}, inline(item))));
}

/** The blocks of a paragraph: its sentences, and a list after them. */
function blocks(paragraph) {
  const lines = paragraph.split('\n');
  const first = lines.findIndex(isItem);
  const said = first < 0 ? lines : lines.slice(0, first);
  return [
    said.length > 0 && h('p', {}, inline(said.map((line) => line.trim()).join(' '))),
    first >= 0 && items(lines.slice(first)),
  ].filter(Boolean);
}

/** The text as elements. @param {string} [text] @returns {HTMLElement[]} one box, or nothing for no text */
export function prose(text, className = 'op-text') {
  if (!text) return [];
  return [h('div', { ...ENGLISH, class: `prose ${className}` }, text.trim().split(/\n\s*\n/).flatMap(blocks))];
}
