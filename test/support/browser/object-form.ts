/** The form of a new object in the console. */
import type { Page } from 'playwright-core';
import { until } from '../until.js';

/** Types the id. The proposed one may change while objects are loaded, even between the steps of `fill`. */
export async function typeId(page: Page, id: string): Promise<void> {
  const field = page.getByLabel('Id', { exact: true });
  const isTyped = async (): Promise<boolean> => {
    await field.fill(id);
    return (await field.inputValue()) === id;
  };
  await until(isTyped, `the id ${id} to be typed`);
}
