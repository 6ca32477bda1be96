/** Explains what the routes of gateways require for one request. */
import { Alert, Group, Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { useTexts } from '../app/address';
import { useAnswer } from './answer';
import { Status } from '../kit/show';
import { Explained, Verdicts } from './explained';

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

export default function RouteExplain() {
  const { t } = useTranslation();
  const { host, method, path } = useTexts();
  const answer = useAnswer('/admin/guard/explain', method && path ? { host: host ?? '', method, path } : undefined);
  const x = answer.data?.data;
  return (
    <Explained
      area="gateway"
      back="/gateways"
      needs="GET /admin/guard/routes"
      error={answer.error}
      fields={[
        { name: 'method', title: 'gateway.method', required: true, options: methods },
        { name: 'path', title: 'gatewayWhy.pathHelp', required: true },
        { name: 'host', title: 'gateway.host' },
      ]}
    >
      {x && (
        <>
          <Alert color={x.decision === 'DENY' ? 'red' : 'green'} data-testid="decision">
            <Group gap="xs">
              <Status of={x.decision} />
              <Text size="sm">{t(`gatewayWhy.${x.reason}`)}</Text>
              {x.routeId !== null && <Text size="sm">{t('gatewayWhy.by', { id: x.routeId })}</Text>}
              {x.detail && <bdi lang="en">{x.detail}</bdi>}
            </Group>
          </Alert>
          {x.rows.length > 0 && (
            <Verdicts
              heads={['gateway.rows', 'gatewayWhy.value']}
              rows={x.rows.map((r) => ({ key: r.key, cells: [<bdi>{r.label || r.key}</bdi>, <bdi>{r.value}</bdi>] }))}
            />
          )}
        </>
      )}
    </Explained>
  );
}
