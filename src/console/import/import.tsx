/** Objects from a file of a spreadsheet: what is done with its rows is loaded when there is one. */
import { useSignal } from '@preact/signals';
import { NotPermitted } from '../parts/notices.js';
import { Section } from '../parts/tabs.js';
import { loadPart, withTextsOf } from '../state/parts.js';
import { may, pages } from '../state/session.js';
import { loadTexts, type TextLoader, t } from '../text/language.js';
import type { Sheet } from './csv.js';

const IMPORT_TEXTS: TextLoader = {
  en: () => import('../text/english-import.js'),
  de: () => import('../text/german-import.js'),
};

/** Before it is shown. */
export const loadOwnTexts = (): Promise<void> => loadTexts(IMPORT_TEXTS);

/** What was read of a file, and what shows it. */
interface Chosen extends Pick<typeof import('./sheet-table.js'), 'SheetTable'> {
  readonly sheet: Sheet;
}

export function Import() {
  const chosen = useSignal<Chosen | null>(null);
  const fault = useSignal<string | null>(null);
  const choose = async (file: File): Promise<void> => {
    chosen.value = null;
    fault.value = null;
    try {
      const part = await loadPart(() => import('./sheet-table.js').then(withTextsOf));
      const sheet = await part.readFile(file);
      chosen.value = { sheet, SheetTable: part.SheetTable };
    } catch (error) {
      fault.value = (error as Error).message;
    }
  };
  if (!pages.value.objects || !(may('POST', '/objects') || may('PATCH', '/objects')))
    return <NotPermitted request="POST /objects" />;
  return (
    <div class="import">
      <Section title={t('import.title')} about={t('import.about')}>
        <FileField onChoose={(file) => void choose(file)} />
        {fault.value !== null && (
          <p class="problem" role="alert">
            {fault.value}
          </p>
        )}
        {chosen.value && <chosen.value.SheetTable sheet={chosen.value.sheet} />}
      </Section>
    </div>
  );
}

function FileField({ onChoose }: { onChoose: (file: File) => void }) {
  const choose = (event: Event): void => {
    const input = event.currentTarget as HTMLInputElement;
    const [file] = input.files ?? [];
    if (file) onChoose(file);
  };
  return (
    <div class="field">
      <label for="import-file">{t('import.file')}</label>
      <input
        id="import-file"
        type="file"
        accept=".csv,.txt,.tsv,text/csv"
        // The same file may be chosen again, after it was corrected.
        onClick={(event) => {
          event.currentTarget.value = '';
        }}
        onChange={choose}
      />
    </div>
  );
}
