/** A new key of a service client, shown once. */
import { Alert, Button, Code, CopyButton, Group, Modal, Stack, Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';

export interface Made {
  name: string;
  key: string;
}

export function FirewallNote() {
  const { t } = useTranslation();
  return (
    <Text size="sm" c="dimmed">
      {t('serviceKeys.firewall')}
    </Text>
  );
}

/** The service stores only a hash, so the dialog closes only by its button. */
export function Once({ of, onClose }: { of?: Made; onClose: () => void }) {
  const { t } = useTranslation();
  return (
    <Modal
      opened={!!of}
      onClose={onClose}
      title={t('serviceKeys.once', { name: of?.name })}
      size="lg"
      closeOnClickOutside={false}
      closeOnEscape={false}
      withCloseButton={false}
    >
      {of && (
        <Stack data-testid="once">
          <Alert color="yellow">{t('serviceKeys.onceLead')}</Alert>
          <Text size="sm">{t('serviceKeys.header')}</Text>
          <Code block dir="ltr" style={{ overflowWrap: 'anywhere', whiteSpace: 'pre-wrap' }} data-testid="key">
            {of.key}
          </Code>
          <FirewallNote />
          <Group justify="flex-end">
            <CopyButton value={of.key}>
              {({ copied, copy }) => (
                <Button variant="default" onClick={copy} data-testid="copy-key">
                  {t(copied ? 'copied' : 'copy')}
                </Button>
              )}
            </CopyButton>
            <Button onClick={onClose} data-testid="stored">
              {t('serviceKeys.stored')}
            </Button>
          </Group>
        </Stack>
      )}
    </Modal>
  );
}
