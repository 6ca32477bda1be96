/**
 * Images side by side that move together: a rotation, zoom or drag in one pane applies to all, because the reviewer
 * compares them. Wheel, pinch, drag, buttons and keys do the same.
 */
import { ActionIcon, Group, SimpleGrid, Text } from '@mantine/core';
import { IconRotate, IconRotateClockwise, IconZoomIn, IconZoomOut, IconZoomReset } from '@tabler/icons-react';
import { useEffect, useEffectEvent, useRef, useState, type PointerEvent } from 'react';
import { useTranslation } from 'react-i18next';
import { Watermark } from '../../kit/picture';
import { useKeys } from '../../kit/keys';
import type { Shot } from './shelf';

interface View {
  scale: number;
  x: number;
  y: number;
  /** Degrees. */
  turn: number;
}

const still: View = { scale: 1, x: 0, y: 0, turn: 0 };
const most = 8;
const step = 1.25;
const stride = 40; // pixels per arrow key

/** Zooms about a point, relative to the centre of the pane. */
function zoom(v: View, by: number, x = 0, y = 0): View {
  const scale = Math.min(most, Math.max(1, v.scale * by));
  if (scale === 1) return { ...still, turn: v.turn };
  const k = scale / v.scale;
  return { ...v, scale, x: x - (x - v.x) * k, y: y - (y - v.y) * k };
}

const move = (v: View, x: number, y: number): View => (v.scale === 1 ? v : { ...v, x: v.x + x, y: v.y + y });
const turn = (v: View, by: number): View => ({ ...v, turn: v.turn + by });

export function Viewer({ shots, onReady }: { shots: Shot[]; onReady?: () => void }) {
  const { t } = useTranslation();
  const [view, setView] = useState(still);
  const loaded = useRef(new Set<string>());
  const tools = [
    { key: '+', name: 'kyc.zoomIn', icon: IconZoomIn, run: () => setView((v) => zoom(v, step)) },
    { key: '-', name: 'kyc.zoomOut', icon: IconZoomOut, run: () => setView((v) => zoom(v, 1 / step)) },
    { key: '0', name: 'kyc.zoomReset', icon: IconZoomReset, run: () => setView(still) },
    { key: 'r', name: 'kyc.turnRight', icon: IconRotateClockwise, run: () => setView((v) => turn(v, 90)) },
    { key: 'l', name: 'kyc.turnLeft', icon: IconRotate, run: () => setView((v) => turn(v, -90)) },
  ] as const;
  const by = (x: number, y: number) => () => setView((v) => move(v, x, y));
  useKeys({
    ...Object.fromEntries(tools.map(({ key, run }) => [key, run])),
    '=': () => setView((v) => zoom(v, step)),
    ArrowLeft: by(stride, 0),
    ArrowRight: by(-stride, 0),
    ArrowUp: by(0, stride),
    ArrowDown: by(0, -stride),
  });
  const one = (url: string) => {
    loaded.current.add(url);
    if (loaded.current.size === shots.length) onReady?.();
  };
  return (
    <div data-testid="viewer" data-scale={view.scale.toFixed(2)} data-turn={view.turn}>
      <Group gap="xs" mb="xs" role="toolbar" aria-label={t('kyc.tools')}>
        {tools.map(({ key, name, icon: Icon, run }) => (
          <ActionIcon
            key={key}
            variant="default"
            onClick={run}
            aria-label={t(name)}
            title={`${t(name)} (${key})`}
            data-testid={name}
          >
            <Icon size={16} />
          </ActionIcon>
        ))}
        <Text size="sm" c="dimmed" aria-hidden>
          <bdi dir="ltr">{Math.round(view.scale * 100)} %</bdi>
        </Text>
      </Group>
      <SimpleGrid cols={{ base: 1, sm: Math.min(shots.length, 2), xl: Math.min(shots.length, 3) }} spacing="xs">
        {shots.map((shot) => (
          <Pane key={shot.url} shot={shot} view={view} setView={setView} onLoad={() => one(shot.url)} />
        ))}
      </SimpleGrid>
    </div>
  );
}

type Set = (next: (v: View) => View) => void;

function Pane({ shot, view, setView, onLoad }: { shot: Shot; view: View; setView: Set; onLoad: () => void }) {
  const { t } = useTranslation();
  const pane = useRef<HTMLDivElement>(null);
  const image = useRef<HTMLImageElement>(null);
  const loaded = useEffectEvent(onLoad);
  useEffect(() => {
    if (image.current?.complete) loaded(); // it was rendered ahead, and its load event is over
  }, []);
  const name = shot.known ? t(`kyc.part.${shot.part}`, { defaultValue: shot.part }) : shot.part;
  const hands = useHands(pane, setView);
  return (
    <figure className="kyc-pane-frame">
      <figcaption>
        <Text size="sm" c="dimmed" truncate>
          <bdi>{name}</bdi>
        </Text>
      </figcaption>
      <div ref={pane} className="kyc-pane" data-zoomed={view.scale > 1 || undefined} {...hands}>
        <img
          ref={image}
          src={shot.url}
          alt={name}
          draggable={false}
          onLoad={onLoad}
          onError={onLoad}
          data-testid="shot"
          style={{ transform: `translate(${view.x}px, ${view.y}px) scale(${view.scale}) rotate(${view.turn}deg)` }}
        />
        <Watermark />
      </div>
    </figure>
  );
}

/** One finger drags, two pinch and rotate, the wheel zooms at the pointer. */
function useHands(pane: { current: HTMLDivElement | null }, setView: Set) {
  const hands = useRef(new Map<number, { x: number; y: number }>());
  const middle = (x: number, y: number) => {
    const box = pane.current!.getBoundingClientRect();
    return [x - box.x - box.width / 2, y - box.y - box.height / 2] as const;
  };
  const roll = useEffectEvent((event: WheelEvent) => {
    event.preventDefault();
    const [x, y] = middle(event.clientX, event.clientY);
    setView((v) => zoom(v, Math.exp(-event.deltaY / 400), x, y));
  });
  useEffect(() => {
    const element = pane.current;
    const wheel = (event: WheelEvent) => roll(event); // a listener of React could not prevent the page from scrolling
    element?.addEventListener('wheel', wheel, { passive: false });
    return () => element?.removeEventListener('wheel', wheel);
  }, [pane]);
  const leave = (event: PointerEvent) => {
    hands.current.delete(event.pointerId);
  };
  return {
    onPointerDown(event: PointerEvent) {
      event.currentTarget.setPointerCapture(event.pointerId);
      hands.current.set(event.pointerId, { x: event.clientX, y: event.clientY });
    },
    onPointerMove(event: PointerEvent) {
      const was = hands.current.get(event.pointerId);
      if (!was) return;
      const is = { x: event.clientX, y: event.clientY };
      const other = [...hands.current].find(([id]) => id !== event.pointerId)?.[1];
      hands.current.set(event.pointerId, is);
      if (!other) {
        setView((v) => move(v, is.x - was.x, is.y - was.y));
        return;
      }
      const far = (p: { x: number; y: number }) => Math.hypot(p.x - other.x, p.y - other.y) || 1;
      const angle = (p: { x: number; y: number }) => (Math.atan2(p.y - other.y, p.x - other.x) * 180) / Math.PI;
      const [x, y] = middle((is.x + other.x) / 2, (is.y + other.y) / 2);
      const ratio = far(is) / far(was);
      const by = angle(is) - angle(was);
      setView((v) => turn(zoom(v, ratio, x, y), by));
    },
    onPointerUp: leave,
    onPointerCancel: leave,
    onDoubleClick: () => setView((v) => (v.scale > 1 ? { ...still, turn: v.turn } : zoom(v, 2))),
  };
}
