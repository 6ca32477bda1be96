/** Links to screens in the form of Mantine's components. tsc checks path, id and search (address.ts). */
import { Anchor, Button, Card, Menu } from '@mantine/core';
import type { AnchorProps, ButtonProps, CardProps, MenuItemProps } from '@mantine/core';
import { createLink } from '@tanstack/react-router';
import type { ComponentPropsWithRef } from 'react';

type Of<P> = P & Omit<ComponentPropsWithRef<'a'>, keyof P>;

export const AnchorLink = createLink((props: Of<AnchorProps>) => <Anchor {...props} />);
export const ButtonLink = createLink((props: Of<ButtonProps>) => <Button component="a" {...props} />);
export const CardLink = createLink((props: Of<CardProps>) => <Card component="a" {...props} />);
export const ItemLink = createLink((props: Of<MenuItemProps>) => <Menu.Item component="a" {...props} />);
