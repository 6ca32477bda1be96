// The rules find faults of types, hooks and accessibility; Prettier has the say on form. A disabled rule has its
// reason on the line.
import js from '@eslint/js';
import access from 'eslint-plugin-jsx-a11y';
import hooks from 'eslint-plugin-react-hooks';
import { defineConfig } from 'eslint/config';
import ts from 'typescript-eslint';

export default defineConfig(
  { ignores: ['src/api.d.ts'] }, // generated
  {
    files: ['src/**/*.{ts,tsx}'],
    extends: [
      js.configs.recommended,
      ts.configs.recommendedTypeChecked,
      hooks.configs.flat.recommended,
      access.flatConfigs.recommended,
    ],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      // A member that is taken off a record stays unused.
      '@typescript-eslint/no-unused-vars': ['error', { ignoreRestSiblings: true }],
    },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
  },
);
