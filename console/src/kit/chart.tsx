/** Values over time, drawn by uPlot, which is loaded with the first chart. Screen readers get a table. */
import { Group, Text, useMantineColorScheme, useMantineTheme, VisuallyHidden } from '@mantine/core';
import { useElementSize } from '@mantine/hooks';
import { useEffect, useRef } from 'react';
import { useTranslation } from 'react-i18next';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';

export interface Series {
  /** Already translated. */
  name: string;
  /** One value for each time; null for unknown. Only for display: exact amounts are shown elsewhere. */
  values: (number | null)[];
}

/** Lines differ by dashes, not only by colour. */
const inks = ['indigo', 'teal', 'orange', 'grape'] as const;
const dashes = [[], [8, 4], [2, 3], [10, 3, 2, 3]];

/** times are seconds since 1970, in ascending order. */
export default function Chart({
  title,
  times,
  series,
  height = 200,
  bars = false,
}: {
  title: string;
  times: number[];
  series: Series[];
  height?: number;
  bars?: boolean;
}) {
  const { t, i18n } = useTranslation();
  const { ref, width } = useElementSize();
  const theme = useMantineTheme();
  const { colorScheme } = useMantineColorScheme();
  const plot = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!plot.current || !width || times.length === 0) return undefined;
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue('--mantine-color-text').trim();
    const grid = { stroke: style.getPropertyValue('--mantine-color-default-border').trim(), width: 1 };
    const colours = inks.map((name) => theme.colors[name][5]);
    const short = times.at(-1)! - times[0]! < 2 * 86_400;
    const day = new Intl.DateTimeFormat(
      `${i18n.language}-u-ca-gregory`,
      short ? { hour: '2-digit', minute: '2-digit' } : { month: 'short', day: 'numeric' },
    );
    const edge = bars ? ((times.at(-1)! - times[0]!) / times.length || 86_400) / 2 : 0; // half a bar
    const drawn = new uPlot(
      {
        width,
        height,
        legend: { show: false },
        cursor: { y: false },
        scales: {
          x: { range: (_, from, to) => [from - edge, to + edge] },
          y: { range: (_, low, high) => [Math.min(0, low), high || 1] },
        },
        axes: [
          { stroke: ink, grid, values: (_, at) => at.map((s) => day.format(new Date(s * 1000))) },
          { stroke: ink, grid, size: 60 },
        ],
        series: [
          {},
          ...series.map((s, n) => ({
            label: s.name,
            stroke: colours[n % 4],
            width: 2,
            dash: dashes[n % 4],
            ...(bars ? { fill: `${colours[n % 4]}80`, paths: uPlot.paths.bars!({ size: [0.7, 40] }) } : {}),
          })),
        ],
      },
      [times, ...series.map((s) => s.values)],
      plot.current,
    );
    return () => drawn.destroy();
  }, [times, series, width, height, bars, colorScheme, i18n.language, theme]);
  if (times.length === 0)
    return (
      <Text size="sm" c="dimmed">
        {t('list.empty')}
      </Text>
    );
  return (
    <div ref={ref} data-testid="chart">
      <div ref={plot} dir="ltr" aria-hidden style={{ minHeight: height }} />
      {series.length > 1 && (
        <Group gap="md" justify="center" aria-hidden>
          {series.map((s, n) => (
            <Group key={s.name} gap={6}>
              <svg width="28" height="4">
                <line
                  x1="0"
                  y1="2"
                  x2="28"
                  y2="2"
                  strokeWidth="3"
                  stroke={theme.colors[inks[n % 4]!][5]}
                  strokeDasharray={dashes[n % 4]!.join(' ')}
                />
              </svg>
              <Text size="xs">{s.name}</Text>
            </Group>
          ))}
        </Group>
      )}
      <VisuallyHidden>
        <table>
          <caption>{title}</caption>
          <tbody>
            {times.map((at, n) => (
              <tr key={at}>
                <th scope="row">{new Date(at * 1000).toISOString().slice(0, 16).replace('T', ' ')}</th>
                {series.map((s) => (
                  <td key={s.name}>{s.values[n]}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </VisuallyHidden>
    </div>
  );
}
