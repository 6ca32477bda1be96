/** The screen of an administered record: the list, the drawer of a row, and the form that changes it. */
import { Button, Group, Text } from '@mantine/core';
import { useState, type ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import type { Gets } from '../app/api';
import { useMay } from '../app/session';
import { List, type ListProps, type Row } from './list';
import { Whole, type Command } from './record';
import type { TextKey } from '../text/key';

interface Props<P extends Gets> extends ListProps<P> {
  /** Key of the title of the drawer. Without one, a row opens its form. */
  one?: TextKey;
  /** The command that creates the record again. */
  curl?: (row: Row<P>) => Command;
  /** Key of a text above the actions. */
  lead?: TextKey;
  /** The button that opens the form, and the operation that it needs. */
  change?: { title: TextKey; needs: string; testid?: string; when?: (row: Row<P>) => boolean };
  form?: (row: Row<P>, close: () => void) => ReactNode;
  /** Further actions beside the button. */
  acts?: (row: Row<P>, close: () => void) => ReactNode;
  /** Below the actions. */
  more?: (row: Row<P>, close: () => void) => ReactNode;
}

export function Administered<P extends Gets>({ one, curl, lead, change, form, acts, more, ...list }: Props<P>) {
  const { t } = useTranslation();
  const may = useMay();
  const [open, setOpen] = useState<Row<P>>();
  const [edited, setEdited] = useState<Row<P>>();
  const close = () => setOpen(undefined);
  const changes = !!change && may(change.needs);
  const button = changes && open && (change.when?.(open) ?? true);
  return (
    <>
      <List<P> {...list} size={undefined} open={one ? setOpen : changes ? setEdited : undefined} />
      {one && (
        <Whole of={open} title={one} onClose={close} curl={open && curl?.(open)}>
          {open && lead && (
            <Text size="sm" c="dimmed">
              {t(lead)}
            </Text>
          )}
          {open && (button || acts) && (
            <Group gap="xs">
              {button && (
                <Button
                  size="xs"
                  data-testid={change.testid}
                  onClick={() => {
                    setEdited(open);
                    close();
                  }}
                >
                  {t(change.title)}
                </Button>
              )}
              {acts?.(open, close)}
            </Group>
          )}
          {open && more?.(open, close)}
        </Whole>
      )}
      {edited && form?.(edited, () => setEdited(undefined))}
    </>
  );
}
