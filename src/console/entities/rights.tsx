/** What a user may do, and why: the service explains one request of one user. */
import { useSignal } from '@preact/signals';
import { Field, Form, Problem, Select, useWork } from '../parts/form.js';
import { Skeleton } from '../parts/notices.js';
import { Section } from '../parts/tabs.js';
import { type Routes, request, toQueryString, VigilError } from '../state/api.js';
import { useFetched } from '../state/fetched.js';
import { useLocation } from '../state/location.js';
import { namedOf, nameOf, titleOf } from '../state/references.js';
import { write } from '../state/write.js';
import { type TextKey, t } from '../text/language.js';

type Permissions = Routes['GET /api/v1/users/{id}/permissions'];
type Rights = Permissions['answer'];
type Method = Permissions['query']['method'];
const METHODS = ['GET', 'POST', 'PATCH', 'DELETE'];

export function RightsPage() {
  const { query, route } = useLocation();
  const user = useSignal(query.user ?? '');
  const method = useSignal(query.method ?? 'GET');
  const path = useSignal(query.path ?? '');
  const work = useWork();
  const ask = async (): Promise<void> =>
    route(
      `/access/rights${toQueryString({
        user: user.value,
        method: path.value === '' ? undefined : method.value,
        path: path.value.trim() || undefined,
      })}`,
    );
  const users = namedOf('users').map((one) => [one._id, titleOf(one)] as const);
  return (
    <>
      <Section title={t('rights.title')} about={t('rights.about')}>
        <Form work={work} submit={t('rights.ask')} onSubmit={ask} disabled={user.value === ''}>
          <Select label={t('sharing.user')} value={user.value} options={[['', '–'], ...users]} onChange={write(user)} />
          <Select
            label={t('entity.method')}
            value={method.value}
            options={METHODS.map((one) => [one, t(`rights.${one}` as TextKey)])}
            onChange={write(method)}
          />
          <Field label={t('entity.path')} hint={t('rights.pathHint')} value={path.value} onInput={write(path)} />
        </Form>
      </Section>
      {query.user && <Answer user={query.user} method={query.method} path={query.path} />}
    </>
  );
}

function Answer({ user, method, path }: { user: string; method?: string | undefined; path?: string | undefined }) {
  const { data, error } = useFetched(
    () =>
      request('GET /api/v1/users/{id}/permissions', {
        path: { id: user },
        query: { method: method as Method, path },
      }),
    [user, method, path],
  );
  const rights = data.value;
  const isUnknown = error.value instanceof VigilError && error.value.status === 404;
  if (error.value) return <Problem error={isUnknown ? new Error(t('rights.unknown')) : error.value} />;
  if (rights === null) return <Skeleton rows={3} />;
  return (
    <div role="status">
      {rights.status !== undefined && <Decision rights={rights} request={`${method} ${path}`} />}
      <Section title={t('rights.ofUser', { name: rights.login })}>
        <p>
          {t('entity.role')}: <strong>{rights.role?.name ?? '–'}</strong> · {t('entity.group')}:{' '}
          <strong>{nameOf('groups', rights.group)}</strong>
        </p>
        {!rights.active && <p class="hint warn">{t('rights.401')}</p>}
        <ul class="scopes">
          {rights.credentials?.map((credential) => (
            <li key={credential}>
              <code>{credential}</code>
            </li>
          ))}
        </ul>
      </Section>
    </div>
  );
}

function Decision({
  rights: { status = 200, credential, entity, role, group },
  request,
}: {
  rights: Rights;
  request: string;
}) {
  return (
    <Section title={t(`rights.${status}`)}>
      <p>
        <code>{request}</code>
      </p>
      <ul class="reasons">
        <li>
          {credential
            ? t('rights.line', { role: role?.name ?? '', line: credential })
            : t(status === 403 ? 'rights.noLine' : 'rights.noLineNeeded', { role: role?.name ?? '' })}
        </li>
        {entity?.reasons.map((reason) => (
          <li key={reason}>{t(`rights.by.${reason}`, { group: nameOf('groups', group) })}</li>
        ))}
        {entity?.reasons.length === 0 && <li>{t('rights.unseen', { group: nameOf('groups', group) })}</li>}
      </ul>
    </Section>
  );
}
