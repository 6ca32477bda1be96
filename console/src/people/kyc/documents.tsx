/** The documents of all accounts: search, view and change; upload a document, or add one for a customer. */
import { Stack } from '@mantine/core';
import { useState } from 'react';
import { useMay } from '../../app/session';
import { List, type Column, type FilterOf, type Row } from '../../kit/list';
import { Named } from '../../kit/person';
import { Whole } from '../../kit/record';
import { Status, Time } from '../../kit/show';
import { Word } from '../../kit/word';
import { Write } from '../../kit/write';
import { ChangeDocument, Look } from './document';

const path = '/user/get-documents';
type Document = Row<typeof path>;

const columns: Column<Document>[] = [
  {
    key: 'userId',
    title: 'money.customer',
    person: true,
    show: (d) => <Named name={d.fullName} />,
    text: (d) => d.fullName || d.userId,
  },
  { key: 'name', title: 'user.file', card: 'start', show: (d) => <bdi>{d.name}</bdi> },
  { key: 'reason', title: 'user.decision', card: 'top', show: (d) => <Status of={d.reason} /> },
  { key: 'status', title: 'documents.status', card: 'none', show: (d) => <Status of={d.status} /> },
  { key: 'createdAt', title: 'documents.at', card: 'end', show: (d) => <Time at={d.createdAt} /> },
  // Each installation numbers its types, and only the case of a customer has their names.
  { key: 'type', title: 'documents.type', show: (d) => <Word of="state.type" number={d.type} />, hidden: true },
  { key: 'mimeType', title: 'documents.mime', show: (d) => <bdi dir="ltr">{d.mimeType}</bdi>, hidden: true },
  { key: 'description', title: 'documents.description', hidden: true },
];

const filters: FilterOf<typeof path>[] = [
  { name: 'userId', title: 'documents.owner' },
  { name: 'type', title: 'documents.type' },
  { name: 'status', title: 'documents.status' },
  { name: 'reason', title: 'user.decision' },
];

/** The input as a JSON whole number. Other input stays text, which the service refuses. */
const code = (typed: unknown) =>
  /^\d{1,9}$/.test(String(typed)) ? (JSON.parse(String(typed)) as number) : String(typed);

export default function Documents() {
  const may = useMay();
  const [open, setOpen] = useState<Document>();
  const actions = (
    <>
      <Write
        method="post"
        path="/admin/save-document"
        title="documents.save"
        touches={[path]}
        fields={[
          { name: 'userId', title: 'documents.owner', required: true },
          { name: 'documentName', title: 'documents.name', required: true, help: 'documents.name.help' },
          { name: 'type', title: 'documents.type', required: true, help: 'documents.type.help' },
          { name: 'base64String', title: 'documents.file', kind: 'file', required: true, accept: accepted },
          { name: 'description', title: 'documents.description', kind: 'area' },
        ]}
        make={(v) => ({ ...v, type: code(v.type) })}
      />
      <Write
        method="post"
        path="/document/upload-document"
        title="documents.upload"
        touches={[path]}
        fields={[
          { name: 'fileName', title: 'documents.name', required: true, help: 'documents.name.help' },
          { name: 'base64Data', title: 'documents.file', kind: 'file', required: true, accept: accepted },
          { name: 'description', title: 'documents.description', kind: 'area', required: true },
        ]}
      />
    </>
  );
  return (
    <>
      <List
        path={path}
        title="documents.title"
        columns={columns}
        filters={filters}
        id={(d) => d.id}
        actions={actions}
        open={setOpen}
      />
      <Whole of={open} title="documents.one" onClose={() => setOpen(undefined)}>
        {open && (
          <Stack>
            {may('GET /admin/get-document-file') && <Look of={open} />}
            <ChangeDocument of={open} onDone={(changed) => setOpen(changed)} />
          </Stack>
        )}
      </Whole>
    </>
  );
}

const accepted = 'image/png,image/jpeg,image/webp,image/gif,application/pdf';
