/** The user's own tokens: what they permit, until when, when they were last used; make one, revoke one. */
import { signal, useSignal } from '@preact/signals';
import { Age } from '../parts/age.js';
import { Confirm } from '../parts/confirm.js';
import { Problem } from '../parts/form.js';
import { Icon } from '../parts/icon.js';
import { Empty, Skeleton } from '../parts/notices.js';
import { Section } from '../parts/tabs.js';
import { type Entity, list, request } from '../state/api.js';
import { nowMs } from '../state/clock.js';
import { useFetched } from '../state/fetched.js';
import { usePart } from '../state/parts.js';
import { write } from '../state/write.js';
import { formatDateTime, t } from '../text/language.js';

export interface Token extends Entity {
  readonly name: string;
  readonly scopes?: readonly string[] | null;
  readonly time: number;
  readonly expiresAt: number;
  readonly lastUsed?: number;
}

export function Tokens() {
  const { data, error, seenMs, reload } = useFetched(() => list<Token>('/account/tokens'), [], 'own tokens');
  const isMaking = useSignal(false);
  const revoked = useSignal<Token | null>(null);
  const tokens = data.value?.toReversed();
  const make = (
    <button type="button" class="button primary" onClick={() => write(isMaking)(true)}>
      <Icon name="plus" /> {t('tokens.new')}
    </button>
  );
  return (
    <Section title={t('account.tokens')} about={t('tokens.about')} action={(tokens?.length ?? 0) > 0 && make}>
      <Problem error={error.value} seenMs={seenMs.value} />
      {tokens === undefined && !error.value && <Skeleton rows={3} />}
      {tokens?.length === 0 && (
        <Empty icon="key" title={t('tokens.none')}>
          {make}
        </Empty>
      )}
      <TokenList tokens={tokens ?? []} onRevoke={write(revoked)} />
      <NewToken isOpen={isMaking.value} onMade={() => void reload()} onClose={() => write(isMaking)(false)} />
      {revoked.value && <Revoke token={revoked.value} onDone={reload} onClose={() => write(revoked)(null)} />}
    </Section>
  );
}

const newToken = signal<typeof import('./new-token.js') | null>(null);

interface NewTokenProps {
  readonly isOpen: boolean;
  readonly onMade: () => void;
  readonly onClose: () => void;
}

/** It is loaded when the first token is made. */
function NewToken({ isOpen, ...props }: NewTokenProps) {
  const part = usePart(newToken, () => import('./new-token.js'), isOpen);
  return isOpen && part && <part.NewToken {...props} />;
}

function TokenList({ tokens, onRevoke }: { tokens: readonly Token[]; onRevoke: (token: Token) => void }) {
  return (
    <ul class="items">
      {tokens.map((token) => (
        <li key={token._id} class="item">
          <Icon name="key" size={22} />
          <div class="item-text">
            <h3>
              {token.name}
              {token.expiresAt < nowMs.value && <span class="tag">{t('tokens.expired')}</span>}
            </h3>
            <Scopes scopes={token.scopes ?? null} />
            <p class="quiet">
              {t('tokens.until', { time: formatDateTime(token.expiresAt) })} ·{' '}
              {token.lastUsed ? (
                <>
                  {t('tokens.lastUsed')} <Age ms={token.lastUsed} />
                </>
              ) : (
                t('tokens.neverUsed')
              )}
            </p>
          </div>
          <button type="button" class="button small" onClick={() => onRevoke(token)}>
            {t('tokens.revoke')}
          </button>
        </li>
      ))}
    </ul>
  );
}

const SHOWN_SCOPES = 4;

function Scopes({ scopes }: { scopes: readonly string[] | null }) {
  if (scopes === null) return <p>{t('tokens.allRights')}</p>;
  const hidden = scopes.length - SHOWN_SCOPES;
  return (
    <ul class="scopes">
      {scopes.slice(0, SHOWN_SCOPES).map((scope) => (
        <li key={scope}>
          <code>{scope}</code>
        </li>
      ))}
      {hidden > 0 && <li title={scopes.join('\n')}>+ {hidden}</li>}
    </ul>
  );
}

interface RevokeProps {
  readonly token: Token;
  readonly onDone: () => Promise<void>;
  readonly onClose: () => void;
}

function Revoke({ token, onDone, onClose }: RevokeProps) {
  return (
    <Confirm
      title={t('tokens.revokeTitle', { name: token.name })}
      text={t('tokens.revokeAbout')}
      action={t('tokens.revoke')}
      onConfirm={async () => {
        await request('DELETE /api/v1/account/tokens/{id}', { path: { id: token._id } });
        await onDone();
      }}
      onClose={onClose}
    />
  );
}
