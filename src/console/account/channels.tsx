/** Over what the user is notified of alarms, and when. */
import { useSignal } from '@preact/signals';
import { SEVERITIES } from '../../core/rule/severity.js';
import { Confirm } from '../parts/confirm.js';
import { Field, Form, Problem, Select, useWork } from '../parts/form.js';
import { Icon } from '../parts/icon.js';
import { notify, Skeleton } from '../parts/notices.js';
import { Section } from '../parts/tabs.js';
import { type Routes, request, VigilError } from '../state/api.js';
import { useFetched } from '../state/fetched.js';
import { write } from '../state/write.js';
import { t } from '../text/language.js';
import { type BrowserAddress, canNotify, findEndpoint, subscribe, unsubscribe } from './push.js';

type Account = Routes['GET /api/v1/account']['answer'];
type Channel = Account['channels'][number];
type Kind = Account['channelKinds'][number];
type Severity = Account['minSeverity'];

/** Those with an address that a person writes. */
const WRITTEN = ['email', 'ntfy', 'telegram'] as const;
const kindOf = (channel: Channel): Kind => WRITTEN.find((kind) => kind in channel) ?? 'push';
const writtenOf = (channel: Channel): unknown => Object.entries(channel).find(([name]) => name !== 'confirmed')?.[1];
const browserOf = (channel: Channel): BrowserAddress | null => ('push' in channel ? channel.push : null);
/** What tells channels apart. */
const addressOf = (channel: Channel): string => browserOf(channel)?.endpoint ?? String(writtenOf(channel));
const toChannel = (kind: Kind, value: unknown): Channel => ({ [kind]: value }) as unknown as Channel;
const isSame = (one: Channel, other: Channel): boolean =>
  kindOf(one) === kindOf(other) && addressOf(one) === addressOf(other);

function labelOf(channel: Channel): string {
  const browser = browserOf(channel);
  return browser === null ? addressOf(channel) : (browser.name ?? new URL(browser.endpoint).host);
}

const fetchAccount = (): Promise<Account> => request('GET /api/v1/account', {});

/** As they are now: another page may have changed them. */
async function changeChannels(change: (channels: readonly Channel[]) => Channel[]): Promise<readonly Channel[]> {
  const { channels } = await fetchAccount();
  return (await request('PATCH /api/v1/account', { body: { channels: change(channels) } })).channels;
}

/** Sends a code to a channel that is not confirmed, and a message to others. */
async function sendTest(channel: Channel, isConfirmed: boolean): Promise<void> {
  const { channels } = await request('POST /api/v1/account/channels/test', { body: { channel } });
  const error = channels[0]?.error;
  if (error) throw new Error(t('channels.failed', { error }));
  notify(t(isConfirmed ? 'channels.tested' : 'channels.codeSent', { address: labelOf(channel) }));
}

export function Channels() {
  const { data, error, reload } = useFetched(fetchAccount);
  const account = data.value;
  return (
    <>
      <Section title={t('channels.title')} about={t('channels.about')}>
        <Problem error={error.value} />
        {account === null && !error.value && <Skeleton rows={3} />}
        {account?.channels.length === 0 && <p class="quiet">{t('channels.none')}</p>}
        <ul class="items">
          {account?.channels.map((channel) => (
            <ChannelItem key={`${kindOf(channel)} ${addressOf(channel)}`} channel={channel} onChanged={reload} />
          ))}
        </ul>
      </Section>
      {account && <ThisBrowser account={account} onAdded={reload} />}
      {account && <NewChannel account={account} onAdded={reload} />}
      {account && <When account={account} />}
    </>
  );
}

function ChannelItem({ channel, onChanged }: { channel: Channel; onChanged: () => Promise<void> }) {
  const isRemoving = useSignal(false);
  const work = useWork();
  const { confirmed } = channel;
  const address = labelOf(channel);
  return (
    <li class="item channel">
      <Icon name="bell" size={22} />
      <div class="item-text">
        <h3>
          {address}
          <span class={confirmed ? 'tag' : 'tag warn'}>
            {t(confirmed ? `channels.${kindOf(channel)}` : 'channels.unconfirmed')}
          </span>
        </h3>
        {!confirmed && <Code channel={channel} onConfirmed={onChanged} />}
        <Problem error={work.error.value} />
      </div>
      <div class="actions">
        <button
          type="button"
          class="button small"
          aria-busy={work.isBusy.value}
          aria-label={`${t(confirmed ? 'channels.test' : 'channels.sendCode')}: ${address}`}
          onClick={() => void work.run(() => sendTest(toChannel(kindOf(channel), writtenOf(channel)), confirmed))}
        >
          {t(confirmed ? 'channels.test' : 'channels.sendCode')}
        </button>
        <button
          type="button"
          class="button small"
          aria-label={`${t('action.remove')}: ${address}`}
          onClick={() => write(isRemoving)(true)}
        >
          {t('action.remove')}
        </button>
      </div>
      {isRemoving.value && (
        <Confirm
          title={t('channels.removeTitle', { address })}
          text={t('channels.removeAbout')}
          action={t('action.remove')}
          onConfirm={async () => {
            await changeChannels((channels) => channels.filter((one) => !isSame(one, channel)));
            await unsubscribe(addressOf(channel));
            await onChanged();
          }}
          onClose={() => write(isRemoving)(false)}
        />
      )}
    </li>
  );
}

function Code({ channel, onConfirmed }: { channel: Channel; onConfirmed: () => Promise<void> }) {
  const code = useSignal('');
  const work = useWork();
  const confirm = async (): Promise<void> => {
    const body = { channel: toChannel(kindOf(channel), addressOf(channel)), code: code.value };
    try {
      await request('POST /api/v1/account/channels/confirm', { body });
    } catch (error) {
      if (error instanceof VigilError && error.status === 409) throw new Error(t('channels.noCode'));
      throw error;
    }
    notify(t('channels.isConfirmed', { address: addressOf(channel) }));
    await onConfirmed();
  };
  return (
    <Form work={work} submit={t('channels.confirm')} onSubmit={confirm}>
      <Field
        name="code"
        label={t('channels.code')}
        hint={t('channels.codeHint')}
        value={code.value}
        required
        autocomplete="off"
        onInput={write(code)}
      />
    </Form>
  );
}

/** A button until this browser is one of the channels. */
function ThisBrowser({ account, onAdded }: { account: Account; onAdded: () => Promise<void> }) {
  const endpoint = useFetched(findEndpoint);
  const work = useWork();
  const isThere = account.channels.some((one) => addressOf(one) === endpoint.data.value);
  if (isThere) return null;
  const add = async (): Promise<void> => {
    const browser = await subscribe(account.pushKey);
    if (browser === null) throw new Error(t('channels.pushRefused'));
    const channel = toChannel('push', browser);
    await changeChannels((present) => [...present.filter((one) => !isSame(one, channel)), channel]);
    await Promise.all([onAdded(), endpoint.reload()]);
    await sendTest(channel, true);
  };
  return (
    <Section title={t('channels.push')} about={t(canNotify() ? 'channels.pushAbout' : 'channels.pushUnsupported')}>
      {canNotify() && (
        <button type="button" class="button" aria-busy={work.isBusy.value} onClick={() => void work.run(add)}>
          {t('channels.pushAdd')}
        </button>
      )}
      <Problem error={work.error.value} />
    </Section>
  );
}

function NewChannel({ account, onAdded }: { account: Account; onAdded: () => Promise<void> }) {
  const kinds = WRITTEN.filter((kind) => account.channelKinds.includes(kind));
  const kind = useSignal<(typeof WRITTEN)[number]>(kinds[0] ?? 'ntfy');
  const address = useSignal(kind.value === 'email' ? String(account.email ?? '') : '');
  const work = useWork();
  const add = async (): Promise<void> => {
    const channel = toChannel(kind.value, address.value.trim());
    const channels = await changeChannels((present) => [...present, channel]);
    address.value = '';
    await onAdded();
    if (channels.find((one) => isSame(one, channel))?.confirmed === false) await sendTest(channel, false);
  };
  return (
    <Section title={t('channels.new')}>
      <Form work={work} submit={t('channels.add')} onSubmit={add}>
        <Select
          label={t('channels.kind')}
          value={kind.value}
          options={kinds.map((one) => [one, t(`channels.${one}`)])}
          onChange={(chosen) => {
            kind.value = chosen as (typeof WRITTEN)[number];
            address.value = '';
          }}
        />
        <Field
          key={kind.value}
          name={`channels[${account.channels.length}].${kind.value}`}
          label={t(`channels.${kind.value}Address`)}
          hint={kind.value === 'email' ? undefined : t(`channels.${kind.value}Hint`)}
          value={address.value}
          required
          autocomplete={kind.value === 'email' ? 'email' : 'off'}
          onInput={write(address)}
        />
      </Form>
    </Section>
  );
}

function When({ account }: { account: Account }) {
  const { quiet } = account;
  const hasQuiet = useSignal(quiet !== null);
  const from = useSignal(quiet?.from ?? '22:00');
  const to = useSignal(quiet?.to ?? '06:00');
  const zone = useSignal(quiet === null ? Intl.DateTimeFormat().resolvedOptions().timeZone : (quiet.tz ?? 'UTC'));
  const minSeverity = useSignal<string>(account.minSeverity);
  const work = useWork();
  const save = async (): Promise<void> => {
    const hours = { from: from.value, to: to.value, tz: zone.value };
    const body = { quiet: hasQuiet.value ? hours : null, minSeverity: minSeverity.value as Severity };
    await request('PATCH /api/v1/account', { body });
    notify(t('channels.saved'));
  };
  return (
    <Section title={t('channels.when')}>
      <Form work={work} submit={t('action.save')} onSubmit={save}>
        <Select
          name="minSeverity"
          label={t('channels.minSeverity')}
          value={minSeverity.value}
          options={SEVERITIES.map((one) => [one, t(`severity.${one}`)])}
          onChange={write(minSeverity)}
        />
        <label class="check">
          <input
            type="checkbox"
            checked={hasQuiet.value}
            onChange={(event) => write(hasQuiet)(event.currentTarget.checked)}
          />
          {t('channels.quiet')}
        </label>
        {hasQuiet.value && (
          <div class="row-fields">
            <Field
              name="quiet.from"
              label={t('channels.from')}
              type="time"
              value={from.value}
              required
              onInput={write(from)}
            />
            <Field name="quiet.to" label={t('channels.to')} type="time" value={to.value} required onInput={write(to)} />
            <Field name="quiet.tz" label={t('channels.zone')} value={zone.value} required onInput={write(zone)} />
          </div>
        )}
      </Form>
    </Section>
  );
}
