/** The tours of README.md and docs/tutorial.md: every command runs as written, every answer matches except for ids, times, tokens. */
import { expect, test } from '@jest/globals';
import { runTour } from '../support/docs/tour.js';
import { ADMIN, useService } from '../support/fixture.js';

const service = useService();

test.each(['README.md', 'docs/tutorial.md'])(
  'runs every command of the tour in %s, with the answers shown',
  async (file) => {
    const { given, shown, code, stderr } = await runTour(file, { url: service.url, password: ADMIN.password });
    expect(given).toEqual(shown);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  },
);
