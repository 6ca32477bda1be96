// Makes the package @castellan/client in a folder: the modules that the service serves, unchanged, and their types. The
// one source of both is web/static: TypeScript writes the types from the comments there.
//
//   node client/js/pack.mjs bin/js && npm pack ./bin/js

import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('.', import.meta.url));
const root = join(here, '..', '..');
const out = process.argv[2];
if (!out) throw new Error('usage: node pack.mjs FOLDER');

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
for (const name of ['package.json', 'README.md']) cpSync(join(here, name), join(out, name));
cpSync(join(root, 'LICENSE'), join(out, 'LICENSE'));
const modules = readdirSync(join(root, 'web', 'static')).filter((name) => /^castellan-.*\.js$/.test(name));
for (const name of modules) cpSync(join(root, 'web', 'static', name), join(out, name));
const compiler = join(root, 'tools', 'openapi', 'node_modules', 'typescript', 'bin', 'tsc');
const options = ['--allowJs', '--declaration', '--emitDeclarationOnly', '--strict', '--target', 'es2022', '--module',
  'nodenext'];
execFileSync(process.execPath, [compiler, ...options, ...modules.map((name) => join(out, name))], { stdio: 'inherit' });
