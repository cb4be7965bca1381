/** A webhook: a test of its receiver, another secret, and the messages that it was sent. */
import { useSignal } from '@preact/signals';
import { Confirm } from '../parts/confirm.js';
import { CopyBox } from '../parts/copy.js';
import { Dialog } from '../parts/dialog.js';
import { Problem, useWork } from '../parts/form.js';
import { type Entity, request } from '../state/api.js';
import { may } from '../state/session.js';
import { write } from '../state/write.js';
import { formatNumber, t } from '../text/language.js';
import { labelOf } from './kinds.js';
import { AnswerText, reasonOf, WebhookMessages } from './webhook-messages.js';

interface Answer {
  readonly status: number | null;
  readonly error: string | null;
  readonly answer?: string;
  readonly ms: number;
}

export function WebhookDialog({ handler, onClose }: { handler: Entity; onClose: () => void }) {
  const revision = useSignal(0);
  const onSent = async (): Promise<void> => {
    revision.value++;
  };
  return (
    <Dialog title={labelOf(handler)} onClose={onClose} size="medium">
      <Receiver id={handler._id} onSent={onSent} />
      <WebhookMessages handlerId={handler._id} revision={revision} />
    </Dialog>
  );
}

/** What can be done with the receiver; nothing without a permission. */
function Receiver({ id, onSent }: { id: string; onSent: () => Promise<void> }) {
  const answer = useSignal<Answer | null>(null);
  const secret = useSignal<string | null>(null);
  const work = useWork();
  const test = async (): Promise<void> => {
    answer.value = null;
    answer.value = await request('POST /api/v1/handlers/{id}/test', { path: { id }, body: {} });
    void onSent();
  };
  const isAsked = useSignal(false);
  const renew = async (): Promise<void> => {
    secret.value = (await request('POST /api/v1/handlers/{id}/secret', { path: { id }, body: {} })).secret;
  };
  return (
    <div class="form" aria-live="polite">
      <div class="actions">
        {may('POST', `/handlers/${id}/test`) && (
          <button type="button" class="button" aria-busy={work.isBusy.value} onClick={() => void work.run(test)}>
            {t('webhook.test')}
          </button>
        )}
        {may('POST', `/handlers/${id}/secret`) && secret.value === null && (
          <button type="button" class="button" onClick={() => write(isAsked)(true)}>
            {t('webhook.newSecret')}
          </button>
        )}
      </div>
      {isAsked.value && (
        <Confirm
          title={t('webhook.newSecret')}
          text={t('webhook.renewAbout')}
          action={t('webhook.renew')}
          onConfirm={renew}
          onClose={() => write(isAsked)(false)}
        />
      )}
      <Problem error={work.error.value} />
      {answer.value && (
        <>
          <p class={isAccepted(answer.value) ? 'hint' : 'hint warn'}>
            {t('webhook.tested', { answer: reasonOf(answer.value), ms: formatNumber(answer.value.ms) })}
          </p>
          <AnswerText text={answer.value.answer} />
        </>
      )}
      {secret.value && (
        <>
          <p class="hint warn">{t('webhook.renewed')}</p>
          <CopyBox text={secret.value} label={t('webhook.secret')} />
        </>
      )}
    </div>
  );
}

const isAccepted = ({ status }: Answer): boolean => status !== null && status >= 200 && status < 300;

/** Shows the secret of a new webhook once. */
export function SecretDialog({ handler, onClose }: { handler: Entity; onClose: () => void }) {
  return (
    <Dialog title={labelOf(handler)} onClose={onClose} size="medium" canClose={false}>
      <div class="form">
        <p class="hint warn">{t('webhook.once')}</p>
        <CopyBox text={String(handler.secret)} label={t('webhook.secret')} />
        <div class="form-actions">
          <button type="button" class="button primary" onClick={onClose}>
            {t('webhook.kept')}
          </button>
        </div>
      </div>
    </Dialog>
  );
}
