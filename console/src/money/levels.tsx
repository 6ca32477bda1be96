/** The levels of accounts with their limits, which apply to withdrawals as soon as they are saved. */
import { Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import type { Schemas } from '../app/api';
import { Administered } from '../kit/administered';
import type { Column, Row } from '../kit/list';
import { Diff } from '../kit/record';
import { Money, Status } from '../kit/show';
import { Write, type Input } from '../kit/write';
import { levelName } from '../kit/word';
import type { TextKey } from '../text/key';

const path = '/admin/levels';
type Level = Row<typeof path>;
type Change = Schemas['ChangeLevelRequest'];

/** A monthly limit without a value is thirty times the daily limit. */
const limits = [
  { name: 'sendLimitTRYDaily', title: 'levels.sendTRYDaily', kind: 'money', required: true },
  { name: 'sendLimitTRYMonthly', title: 'levels.sendTRYMonthly', kind: 'money', required: true },
  { name: 'sendLimitCryptoDaily', title: 'levels.sendCryptoDaily', kind: 'money', required: true },
  { name: 'sendLimitCryptoMonthly', title: 'levels.sendCryptoMonthly', kind: 'money', required: true },
  { name: 'receiveLimitTRYDaily', title: 'levels.receiveTRYDaily', kind: 'money', required: true },
  { name: 'receiveLimitTRYMonthly', title: 'levels.receiveTRYMonthly', kind: 'money', help: 'levels.thirty' },
  { name: 'receiveLimitCryptoDaily', title: 'levels.receiveCryptoDaily', kind: 'money', required: true },
  { name: 'receiveLimitCryptoMonthly', title: 'levels.receiveCryptoMonthly', kind: 'money', help: 'levels.thirty' },
] as const;

const names: Record<string, TextKey> = {
  levelLabel: 'levels.label',
  isSpecial: 'levels.special',
  ...Object.fromEntries(limits.map(({ name, title }) => [name, title])),
};

const columns: Column<Level>[] = [
  { key: 'levelId', title: 'levels.number', card: 'top', end: true },
  {
    key: 'levelLabel',
    title: 'levels.label',
    card: 'head',
    show: (l) => <LevelName of={l.levelLabel} />,
    text: (l) => l.levelLabel,
  },
  { key: 'isSpecial', title: 'levels.special', show: (l) => <Status of={l.isSpecial} /> },
  ...limits.map(({ name, title }): Column<Level> => ({
    key: name,
    title,
    end: true,
    show: (l) => <Money amount={l[name]} unit="TRY" />,
    hidden: name.startsWith('receive'),
  })),
];

const fields: Input<Change>[] = [
  { name: 'levelLabel', title: 'levels.label', required: true },
  { name: 'isSpecial', title: 'levels.special', help: 'levels.specialHelp', kind: 'flag' },
  ...limits.map((limit) => ({ ...limit, bounds: () => ({ unit: 'TRY' }) })),
];

function LevelName({ of }: { of: string }) {
  const { t } = useTranslation();
  return <bdi>{levelName(of, t)}</bdi>;
}

export default function Levels() {
  return (
    <Administered
      path={path}
      title="levels.title"
      empty="levels.none"
      next={{ title: 'levels.add', form: 'levels.add', needs: `POST ${path}` }}
      columns={columns}
      id={(l) => String(l.levelId)}
      above={<Lead of="levels.lead" />}
      actions={
        <Write
          method="post"
          path={path}
          title="levels.add"
          button={{ variant: 'filled' }}
          touches={[path]}
          fields={[
            { name: 'levelId', title: 'levels.number', help: 'levels.numberHelp', kind: 'number', required: true },
            ...fields,
          ]}
          initial={{ isSpecial: false }}
        />
      }
      change={{ title: 'levels.change', needs: `PATCH ${path}` }}
      form={(edited, close) => (
        <Write
          key={edited.levelId}
          record={edited.levelId}
          method="patch"
          path={path}
          title="levels.change"
          touches={[path, '/admin/levels-info']}
          opened
          onClose={close}
          initial={edited}
          fields={fields}
          make={(values) => changes(edited, values)}
          before={(values) => (
            <>
              <Diff before={edited} after={{ ...edited, ...changes(edited, values) }} names={names} />
              <Lead of="levels.effect" />
            </>
          )}
        />
      )}
    />
  );
}

/** The changed values; an emptied limit is null. */
function changes(level: Level, values: Record<string, unknown>): Change {
  const before = level as unknown as Record<string, unknown>;
  const now = Object.keys(names).map((name): [string, unknown] => [
    name,
    values[name] || (name === 'isSpecial' ? false : null),
  ]);
  return {
    levelId: level.levelId,
    ...Object.fromEntries(now.filter(([name, value]) => String(value) !== String(before[name]))),
  };
}

function Lead({ of }: { of: TextKey }) {
  const { t } = useTranslation();
  return (
    <Text size="sm" c="dimmed">
      {t(of)}
    </Text>
  );
}
