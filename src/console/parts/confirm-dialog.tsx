/** Asks before something that cannot be undone, and says what it concerns. */
import { t } from '../text/language.js';
import { Dialog } from './dialog.js';
import { Form, useWork } from './form.js';

export interface ConfirmProps {
  readonly title: string;
  readonly text: string;
  readonly action: string;
  readonly onConfirm: () => Promise<void>;
  readonly onClose: () => void;
}

export function ConfirmDialog({ title, text, action, onConfirm, onClose }: ConfirmProps) {
  const work = useWork();
  const submit = async (): Promise<void> => {
    await onConfirm();
    onClose();
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <Form work={work} submit={action || t('action.remove')} onSubmit={submit} onCancel={onClose} kind="danger">
        <p>{text}</p>
      </Form>
    </Dialog>
  );
}
