/** Where the user is logged in. */
import { useSignal } from '@preact/signals';
import { Age } from '../parts/age.js';
import { Confirm } from '../parts/confirm.js';
import { Problem, useWorkOfEach } from '../parts/form.js';
import { Icon } from '../parts/icon.js';
import { Skeleton } from '../parts/notices.js';
import { Section } from '../parts/tabs.js';
import { type Routes, request } from '../state/api.js';
import { useFetched } from '../state/fetched.js';
import { logOut } from '../state/session.js';
import { write } from '../state/write.js';
import { formatDateTime, t } from '../text/language.js';
import { describeAgent } from './agent.js';

type Session = Routes['GET /api/v1/account/sessions']['answer'][number];

export function Sessions() {
  const fetchSessions = () => request('GET /api/v1/account/sessions', {});
  const { data, error, seenMs, reload } = useFetched(fetchSessions, [], 'own sessions');
  const isAsking = useSignal(false);
  const work = useWorkOfEach();
  const end = ({ _id, current }: Session): Promise<void> =>
    work.run([_id], async () => {
      if (current) return logOut();
      await request('DELETE /api/v1/account/sessions/{id}', { path: { id: _id } });
      await reload();
    });
  const sessions = data.value;
  return (
    <Section
      title={t('account.sessions')}
      about={t('sessions.about')}
      action={
        (sessions?.length ?? 0) > 1 && (
          <button type="button" class="button danger" onClick={() => write(isAsking)(true)}>
            {t('sessions.endOthers')}
          </button>
        )
      }
    >
      <Problem error={error.value ?? work.error.value} seenMs={seenMs.value} />
      {sessions === null && !error.value && <Skeleton rows={3} />}
      <ul class="items">
        {sessions?.map((session) => (
          <SessionItem key={session._id} session={session} onEnd={() => void end(session)} />
        ))}
      </ul>
      {isAsking.value && (
        <Confirm
          title={t('sessions.endOthers')}
          text={t('sessions.endOthersAbout')}
          action={t('sessions.endOthers')}
          onConfirm={async () => {
            await request('DELETE /api/v1/account/sessions', {});
            await reload();
          }}
          onClose={() => write(isAsking)(false)}
        />
      )}
    </Section>
  );
}

function SessionItem({ session, onEnd }: { session: Session; onEnd: () => void }) {
  return (
    <li class="item">
      <Icon name="laptop" size={22} />
      <div class="item-text">
        <h3>
          {describeAgent(session.agent ?? '') || t('sessions.unknown')}
          {session.current && <span class="tag good">{t('sessions.current')}</span>}
        </h3>
        <p class="quiet">
          {session.address} · {t('sessions.since')} <Age ms={session.time ?? 0} /> ·{' '}
          {t('sessions.until', { time: formatDateTime(session.expiresAt) })}
        </p>
      </div>
      <button type="button" class="button small" onClick={onEnd}>
        {session.current ? t('menu.logout') : t('sessions.end')}
      </button>
    </li>
  );
}
