/** The log of a fleet that says much. */
import { expect, test } from '@jest/globals';
import { useBrowser } from '../../support/browser/browser.js';
import { useService } from '../../support/fixture.js';

const service = useService();
const browser = useBrowser(service);

test('keeps what the filter shows while thousands of other packets arrive, also when paused', async () => {
  await service.admin('POST', 'objects', { id: 'quiet', name: 'Quiet' });
  await service.admin('POST', 'objects', { id: 'noisy', name: 'Noisy' });
  const sendNoise = async (): Promise<void> => {
    for (let part = 0; part < 7; part++) {
      const packets = Array.from({ length: 1_000 }, (_, speed) => ({ speed }));
      await service.admin('POST', 'objects/noisy/packets', packets);
    }
  };
  const page = await browser.openAs('/log');
  await page.getByRole('searchbox').fill('quiet');
  const send = (step: number) => service.admin('POST', 'objects/quiet/packets', { step });
  const row = (step: number) => page.locator('.log-row', { hasText: `"step":${step}` });
  await send(1);
  await row(1).waitFor();
  await sendNoise();
  await send(2);
  await row(2).waitFor();
  expect(await row(1).count()).toBe(1);
  await page.getByRole('button', { name: 'Pause' }).click();
  await send(3);
  await sendNoise();
  await send(4);
  await service.settled();
  await page.getByRole('button', { name: 'Resume' }).click();
  await row(4).waitFor();
  expect(await row(3).count()).toBe(1);
});
