/** Where an element is on the page, for the pointer. */
import type { Locator } from 'playwright-core';
import { until } from '../until.js';

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** The place of an element in CSS pixels. One that is being drawn again has none for a moment. */
export async function boxOf(element: Locator): Promise<Box> {
  let box: Box | null = null;
  await until(async () => {
    box = await element.boundingBox();
    return box !== null;
  }, `a place of ${element}`);
  return box as unknown as Box;
}
