// Writes the TypeScript types of an interface document: node types.mjs openapi.json api.d.ts. They are those of
// openapi-typescript without what a compiler does not need: texts, examples, declared headers, and absent members.

import { readFile, writeFile } from 'node:fs/promises';
import openapiTS, { astToString } from 'openapi-typescript';

const TEXTS = new Set(['description', 'summary', 'example', 'examples', 'headers']);
// The keys of these objects are names of the document's author.
const NAMED = new Set(['properties', 'paths', 'schemas', 'responses', 'content']);

function bare(node, named = false) {
  if (Array.isArray(node)) return node.map((one) => bare(one));
  if (node === null || typeof node !== 'object') return node;
  const kept = Object.entries(node).filter(([key]) => named || !TEXTS.has(key));
  return Object.fromEntries(kept.map(([key, value]) => [key, bare(value, !named && NAMED.has(key))]));
}

const [, , from, to] = process.argv;
const document = bare(JSON.parse(await readFile(from, 'utf8')));
const types = astToString(await openapiTS(document), { formatOptions: { removeComments: true } });
await writeFile(to, types
  .replace(/^ *[\w"]+\?: never;\n/gm, '')
  .replace(/\{\s*\}/g, '{}')
  .replace(/\{\n *([^\n{}]+;)\n *\}/g, '{ $1 }'));
