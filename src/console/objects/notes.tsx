/** The notes on an object in an interval: what people wrote about it, and a form for one more. */
import { useSignal } from '@preact/signals';
import { Confirm } from '../parts/confirm.js';
import { Field, Form, useWork } from '../parts/form.js';
import { Icon } from '../parts/icon.js';
import { notify } from '../parts/notices.js';
import { request } from '../state/api.js';
import { serverNowMs } from '../state/clock.js';
import { may } from '../state/session.js';
import { write } from '../state/write.js';
import { formatMoment, formatNumber, loadTexts, type TextLoader, t } from '../text/language.js';
import type { IntervalMs } from './days.js';
import type { Note } from './marks.js';

const NOTES_TEXTS: TextLoader = {
  en: () => import('../text/english-notes.js'),
  de: () => import('../text/german-notes.js'),
};

/** Before it is shown. */
export const loadOwnTexts = (): Promise<void> => loadTexts(NOTES_TEXTS);

const MINUTE_MS = 60_000;

interface NotesProps {
  readonly objectId: string;
  readonly notes: readonly Note[];
  /** The shown interval: a new note is about it, unless its writer says otherwise. */
  readonly interval: IntervalMs;
  readonly isWriting: boolean;
  /** Called when notes were added or removed. */
  readonly onChange: () => Promise<void>;
  readonly onClose: () => void;
}

export function Notes({ objectId, notes, interval, isWriting, onChange, onClose }: NotesProps) {
  const asked = useSignal<Note | null>(null);
  const path = `/objects/${objectId}/notes`;
  const remove = async ({ _id }: Note): Promise<void> => {
    await request('DELETE /api/v1/objects/{id}/notes/{noteID}', { path: { id: objectId, noteID: _id } });
    await onChange();
  };
  return (
    <section class="interval-alarms">
      <h3>{t('notes.title', { count: formatNumber(notes.length) })}</h3>
      {isWriting && <NoteForm objectId={objectId} interval={interval} onChange={onChange} onClose={onClose} />}
      <ul class="notes">
        {notes.map((note) => (
          <li key={note._id}>
            <p>{note.text}</p>
            <p class="quiet">
              {whenOf(note)} · {note.author}
              {may('DELETE', `${path}/${note._id}`) && (
                <button
                  type="button"
                  class="icon-button"
                  aria-label={t('notes.remove', { moment: whenOf(note) })}
                  onClick={() => write(asked)(note)}
                >
                  <Icon name="trash" size={16} />
                </button>
              )}
            </p>
          </li>
        ))}
      </ul>
      {asked.value && (
        <Confirm
          title={t('notes.removeTitle')}
          text={asked.value.text}
          action={t('action.remove')}
          onConfirm={() => remove(asked.value as Note)}
          onClose={() => write(asked)(null)}
        />
      )}
    </section>
  );
}

function whenOf({ time, to }: Note): string {
  const from = formatMoment(time, serverNowMs());
  return to === null || to === time ? from : `${from} – ${formatMoment(to, serverNowMs())}`;
}

/** As inputs of local times have it, without seconds. */
const toLocal = (ms: number): string =>
  new Date(ms - new Date(ms).getTimezoneOffset() * MINUTE_MS).toISOString().slice(0, 16);

type FormProps = Pick<NotesProps, 'objectId' | 'interval' | 'onChange' | 'onClose'>;

function NoteForm({ objectId, interval, onChange, onClose }: FormProps) {
  const text = useSignal('');
  const from = useSignal(toLocal(interval.fromMs));
  const to = useSignal(toLocal(Math.min(interval.toMs, Math.max(serverNowMs(), interval.fromMs))));
  const work = useWork();
  const submit = async (): Promise<void> => {
    const body = {
      text: text.value,
      ...(from.value !== '' && { time: new Date(from.value).getTime() }),
      ...(to.value !== '' && { to: new Date(to.value).getTime() }),
    };
    await request('POST /api/v1/objects/{id}/notes', { path: { id: objectId }, body });
    await onChange();
    notify(t('notes.added'));
    onClose();
  };
  return (
    <Form work={work} submit={t('notes.save')} onSubmit={submit} onCancel={onClose}>
      <Field name="text" label={t('notes.text')} value={text.value} onInput={write(text)} rows={3} required autofocus />
      <div class="note-times">
        <Field name="time" label={t('interval.from')} value={from.value} onInput={write(from)} type="datetime-local" />
        <Field
          name="to"
          label={t('interval.to')}
          hint={t('notes.toHint')}
          value={to.value}
          onInput={write(to)}
          type="datetime-local"
        />
      </div>
    </Form>
  );
}
