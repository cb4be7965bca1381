/** The form of a rule in the console, and the objects on which tests try rules. */
import type { Locator, Page } from 'playwright-core';
import { entityOf } from '../answers.js';
import type { TestService } from '../fixture.js';

export const HOUR_MS = 3_600_000;

/** Creates an entity as the administrator, and returns its `_id`. */
export const createIn = async (service: TestService, store: string, fields: object): Promise<string> =>
  entityOf(await service.admin('POST', store, fields))._id as string;

/** Two cold stores with a model, one of which was too warm twice, and a truck that sent nothing. Their `_id`s by their own ids. */
export async function addColdStores(service: TestService): Promise<Map<string, string>> {
  const ids = new Map<string, string>();
  const nowMs = Date.now();
  const model = await createIn(service, 'models', {
    name: 'Cold store',
    data: {
      children: [
        { type: 'argument', id: 'temperature', name: 'Air', unit: '°C' },
        { type: 'action', id: 'defrost', name: 'Defrost' },
      ],
    },
  });
  for (const [id, name] of [
    ['cold-1', 'Cold store 1'],
    ['cold-2', 'Cold store 2'],
    ['truck-1', 'Truck 1'],
  ] as const)
    ids.set(id, await createIn(service, 'objects', { id, name, ...(id === 'truck-1' ? {} : { model }) }));
  // Cold store 1 was too warm twice; cold store 2 came near.
  const warm = [4, 9, 10, 5, 4, 9.5, 4];
  const at = (index: number): number => nowMs - (10 - index) * HOUR_MS;
  const send = (id: string, values: readonly number[]): Promise<unknown> =>
    service.admin(
      'POST',
      `objects/${id}/packets`,
      values.map((temperature, index) => ({ time: at(index), temperature, inner: { door: index % 2 } })),
    );
  await send('cold-1', warm);
  await send('cold-2', [4, 6, 7.5, 5]);
  return ids;
}

/** A part of the form, by its legend. */
export const part = (page: Page, legend: string) => page.getByRole('group', { name: legend, exact: true });

/** Picks from a list, which may still be loading its options. */
export async function pick(field: Locator, option: string): Promise<void> {
  await field.locator(`xpath=..//option[@value="${option}"]`).waitFor({ state: 'attached' });
  await field.fill(option);
}
