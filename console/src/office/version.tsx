/** The actions of a version of a contract: change its names, add a new version, publish and deactivate. */
import { Alert, Text } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { useRead } from '../kit/read';
import type { Row } from '../kit/list';
import { Diff } from '../kit/record';
import { said } from '../kit/sheets';
import { Write } from '../kit/write';
import { details, type Section } from './sections';

export const versions = '/admin/contracts';
export type Version = Row<typeof versions>;

const touched = [versions, '/admin/get-contracts'];

export function VersionActions({ of, all, sections }: { of: Version; all: Version[]; sections: Section[] }) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const active = all.find((other) => other.code === of.code && other.isActive && other.id !== of.id);
  return (
    <>
      {of.status !== 'replaced' && (
        <Write
          key={JSON.stringify(of)} // begins with the stored names
          method="patch"
          path={versions}
          title="contract.names"
          touches={touched}
          fields={[
            { name: 'name', title: 'contract.name', required: true },
            { name: 'nameTr', title: 'contract.nameTr', help: 'contract.nameHelp' },
            { name: 'nameAr', title: 'contract.nameAr', help: 'contract.nameHelp' },
            { name: 'version', title: 'contract.version', when: () => of.status === 'draft' },
          ]}
          initial={of}
          make={(values) => ({ nameTr: null, nameAr: null, ...values, id: of.id })}
        />
      )}
      <Write
        method="post"
        path="/admin/contracts/versions"
        title="contract.newVersion"
        touches={touched}
        fixed={{ id: of.id }}
        fields={[{ name: 'version', title: 'contract.version', required: true }]}
        before={() => <Text size="sm">{t('contract.newVersionHelp')}</Text>}
        onDone={(answer) => void navigate({ to: `/contracts/${said<{ id: number }>(answer).id}` })}
      />
      {(of.status === 'draft' || of.status === 'inactive') && (
        <Write
          method="post"
          path="/admin/contracts/publish"
          title="contract.publish"
          touches={touched}
          fixed={{ id: of.id }}
          fields={[]}
          button={{ variant: 'filled' }}
          before={() => (
            <>
              <Text size="sm">{t('contract.publishHelp')}</Text>
              {active && <Changes from={active} to={sections} />}
            </>
          )}
        />
      )}
      {of.status === 'active' && (
        <Write
          method="post"
          path="/admin/contracts/deactivate"
          title="contract.deactivate"
          touches={touched}
          fixed={{ id: of.id }}
          fields={[]}
          button={{ color: 'red', variant: 'light' }}
          before={() => <Text size="sm">{t('contract.deactivateHelp')}</Text>}
        />
      )}
    </>
  );
}

/** The sections in which a draft differs from the active version. */
function Changes({ from, to }: { from: Version; to: Section[] }) {
  const { t } = useTranslation();
  const before = useRead(details, { contractId: from.id }).data;
  return (
    <>
      <Alert color="yellow">{t('contract.replaces', { version: from.version ?? '–' })}</Alert>
      {before && <Diff before={texts(before)} after={texts(to)} />}
    </>
  );
}

/** The plain text of each section by its title. A title that is used again is numbered. */
function texts(sections: Section[]): Record<string, string> {
  const all: Record<string, string> = {};
  for (const { title, content } of sections) {
    let key = title;
    for (let n = 2; key in all; n++) key = `${title} (${n})`;
    all[key] = content.replaceAll(/<[^>]*>/g, ' ').trim();
  }
  return all;
}
