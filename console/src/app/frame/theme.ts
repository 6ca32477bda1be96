/**
 * The visual identity of the console: colours, type and density. docs/console.md describes the tokens; the pages `/`
 * and `/docs` use the same ones (web/static/style.css).
 */
import { createTheme, type MantineColorsTuple } from '@mantine/core';

/** The green of the castle. Shade 7 has a contrast of 6.3 to 1 on white (WCAG 2.2, 1.4.3: 4.5). */
const castle: MantineColorsTuple = [
  '#e9f5f4',
  '#d0e8e6',
  '#a3d2ce',
  '#74bcb6',
  '#57c5bd',
  '#2d9990',
  '#19807b',
  '#0f6b6b',
  '#0a5757',
  '#074545',
];

/** Drawers and dialogs: the close button has a name, and the title is not the page header (role banner). */
const above = (close: string) => ({
  defaultProps: {
    closeButtonProps: { 'aria-label': close },
    attributes: { header: { role: 'presentation' } },
  },
});

export const theme = (close: string) =>
  createTheme({
    colors: { castle },
    primaryColor: 'castle',
    primaryShade: { light: 7, dark: 8 },
    black: '#18222d',
    defaultRadius: 'md',
    cursorType: 'pointer',
    respectReducedMotion: true,
    fontFamily: 'system-ui, "Segoe UI", Roboto, "Noto Sans", "Noto Sans Arabic", "DejaVu Sans", sans-serif',
    fontSizes: { xs: '12px', sm: '13px', md: '14px', lg: '16px', xl: '18px' },
    headings: {
      fontWeight: '600',
      sizes: { h3: { fontSize: '20px', lineHeight: '1.3' }, h4: { fontSize: '16px' }, h5: { fontSize: '14px' } },
    },
    components: {
      Loader: { defaultProps: { role: 'status' } },
      Button: { defaultProps: { fw: 500 } },
      Badge: { defaultProps: { tt: 'none', fw: 500, radius: 'sm' } },
      Drawer: above(close),
      Modal: above(close),
      Notification: { defaultProps: { closeButtonProps: { 'aria-label': close } } },
    },
  });
