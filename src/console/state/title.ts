/** The title of the window: the object, model or section that the page is about, before the name of the page. */
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';

export const titleOfPage = signal<string | null>(null);

/** Says what the page is about for as long as the component is there; null leaves the name of the page. */
export function useTitle(title: string | null): void {
  useEffect(() => {
    titleOfPage.value = title;
    return () => {
      titleOfPage.value = null;
    };
  }, [title]);
}
