/** What people do with alarms. The page shows it with the answer, not only with the event that follows. */
import { type Alarm, isStillWaiting, isWaiting, onAlarm, takeAlarm } from '../state/alarms.js';
import { request } from '../state/api.js';
import { serverNowMs } from '../state/clock.js';
import { may, user } from '../state/session.js';

const MOST_AT_ONCE = 1_000;

export const mayAcknowledge = (id: string): boolean => may('POST', `/alarms/${id}/acknowledge`);

export async function acknowledge(id: string, note: string): Promise<void> {
  const body = note === '' ? {} : { note };
  await takeAnswer(id, request('POST /api/v1/alarms/{id}/acknowledge', { path: { id }, body }));
}

export async function addNote(id: string, text: string): Promise<void> {
  await takeAnswer(id, request('POST /api/v1/alarms/{id}/notes', { path: { id }, body: { text } }));
}

export async function clear(id: string): Promise<void> {
  await takeAnswer(id, request('POST /api/v1/alarms/{id}/clear', { path: { id }, body: {} }));
}

/** Takes the alarm of an answer, unless an event has told of it meanwhile: that is newer, or else something newer still comes. */
async function takeAnswer(id: string, answer: Promise<object>): Promise<void> {
  let isTold = false;
  const stop = onAlarm(({ _id }) => {
    isTold ||= _id === id;
  });
  try {
    const alarm = (await answer) as Alarm;
    if (!isTold) takeAlarm(alarm);
  } finally {
    stop();
  }
}

/** Returns how many of them were acknowledged now. */
export async function acknowledgeAll(alarms: readonly Alarm[]): Promise<number> {
  const waiting = alarms.filter(isWaiting);
  let done = 0;
  for (let begin = 0; begin < waiting.length; begin += MOST_AT_ONCE) {
    const part = waiting.slice(begin, begin + MOST_AT_ONCE);
    const answer = await request('POST /api/v1/alarms/acknowledge', { body: { ids: part.map(({ _id }) => _id) } });
    done += answer.done;
    const failed = new Set(answer.failed.map(({ _id }) => _id));
    const acknowledged = { time: serverNowMs(), user: user.value?._id ?? '', note: null };
    // What was acknowledged or cleared meanwhile, an event has told.
    for (const alarm of part)
      if (!failed.has(alarm._id) && isStillWaiting(alarm._id)) takeAlarm({ ...alarm, acknowledged });
  }
  return done;
}
