/** A table that may be wider than its place: it scrolls, also by the arrow keys while it has the focus. */
import { Table } from '@mantine/core';
import type { ReactNode } from 'react';

export function Wide(props: { label: string; minWidth: number; maxHeight?: string; children: ReactNode }) {
  return (
    <Table.ScrollContainer
      minWidth={props.minWidth}
      maxHeight={props.maxHeight}
      scrollAreaProps={{ viewportProps: { tabIndex: 0, role: 'region', 'aria-label': props.label } }}
    >
      {props.children}
    </Table.ScrollContainer>
  );
}
