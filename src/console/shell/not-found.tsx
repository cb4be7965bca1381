/** An address that names no page. */

import { Empty } from '../parts/notices.js';
import { toAddress } from '../state/location.js';
import { t } from '../text/language.js';

export function NotFound() {
  return (
    <Empty icon="search" title={t('notFound.title')}>
      <a class="button primary" href={toAddress('/')}>
        {t('notFound.home')}
      </a>
    </Empty>
  );
}
