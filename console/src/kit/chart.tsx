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
const inks = ['castle', 'orange', 'indigo', 'grape'] as const;
const dashes = [[], [8, 4], [2, 3], [10, 3, 2, 3]];

/** The ticks of a chart of counts, the last one above the highest bar. */
function ticks(high: number): number[] {
  const power = 10 ** Math.floor(Math.log10(Math.max(high, 1)));
  const step = Math.max(1, power * (high / power < 2 ? 0.5 : high / power < 5 ? 1 : 2));
  return Array.from({ length: Math.floor(high / step) + 2 }, (_, n) => n * step);
}

/** A pattern of diagonal lines. */
function hatched(colour: string): CanvasPattern | string {
  const tile = document.createElement('canvas');
  tile.width = tile.height = 8;
  const pen = tile.getContext('2d');
  if (!pen) return colour;
  pen.strokeStyle = colour;
  pen.lineWidth = 2;
  for (const at of [-8, 0, 8]) {
    pen.moveTo(at, 8);
    pen.lineTo(at + 8, 0);
  }
  pen.stroke();
  return pen.createPattern(tile, 'repeat') ?? colour;
}

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
    const colours = inks.map((name) => theme.colors[name]![5]);
    const short = times.at(-1)! - times[0]! < 2 * 86_400;
    const day = new Intl.DateTimeFormat(
      `${i18n.language}-u-ca-gregory`,
      short ? { hour: '2-digit', minute: '2-digit' } : { month: 'short', day: 'numeric' },
    );
    const highest = Math.max(0, ...series.flatMap((s) => s.values.map((v) => v ?? 0)));
    const today = bars && Date.now() / 1000 < times.at(-1)! + 86_400; // its bar is still growing
    const edge = bars ? ((times.at(-1)! - times[0]!) / times.length || 86_400) / 2 : 0; // half a bar
    const drawn = new uPlot(
      {
        width,
        height,
        legend: { show: false },
        cursor: { y: false },
        scales: {
          x: { range: (_, from, to) => [from - edge, to + edge] },
          y: { range: (_, low, high) => (bars ? [0, ticks(highest).at(-1)!] : [Math.min(0, low), high || 1]) },
        },
        axes: [
          { stroke: ink, grid, values: (_, at) => at.map((s) => day.format(new Date(s * 1000))) },
          { stroke: ink, grid, size: 60, ...(bars ? { splits: () => ticks(highest) } : {}) },
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
          ...(today
            ? series.map((_, n) => ({
                stroke: colours[n % 4],
                fill: hatched(colours[n % 4]!),
                width: 1,
                paths: uPlot.paths.bars!({ size: [0.7, 40] }),
              }))
            : []),
        ],
      },
      [
        times,
        ...series.map((s) => (today ? s.values.with(-1, null) : s.values)),
        ...(today ? series.map((s) => s.values.map((v, n) => (n === s.values.length - 1 ? v : null))) : []),
      ],
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
                  stroke={theme.colors[inks[n % 4]!]![5]}
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
