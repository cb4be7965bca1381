/** The tours of README.md and docs/tutorial.md: every command runs as written, every answer matches except for ids, times, tokens. */
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, test } from '@jest/globals';
import { type Block, readBlocks, readSection } from '../support/docs/markdown.js';
import { runShell } from '../support/docs/shell.js';
import { ADMIN, useService } from '../support/fixture.js';

const service = useService();
const PRINTED_END = '\x1e';
const END_OF_STEP = '\\036';

/** One shell block, and the answer that the tour shows below it; null where it shows none. */
interface Step {
  readonly commands: string;
  readonly answer: string | null;
}

function toSteps(blocks: readonly Block[]): Step[] {
  return blocks.flatMap(({ kind, body }, at) => {
    if (kind !== 'sh') return [];
    const next = blocks[at + 1];
    return [{ commands: body, answer: next === undefined || next.kind === 'sh' ? null : next.body }];
  });
}

/** What differs from run to run: ids become their rank of appearance, so that the same id is the same everywhere. */
function withoutChance(answers: readonly string[]): string[] {
  const ids = new Map<string, string>();
  const nameOf = (id: string): string => {
    if (!ids.has(id)) ids.set(id, `id ${ids.size}`);
    return ids.get(id) as string;
  };
  return answers.map((answer) =>
    answer
      .trim()
      .replace(/\b(?!0{12})[0-9a-f]{24}\b/g, nameOf)
      .replace(/\beyJ[\w.-]+/g, 'TOKEN')
      .replace(/"(sid|position)":"[\w-]+"/g, '"$1":"ANY"')
      // The packets of the tour have times of their own; all other times are those of the run.
      .replace(/\b(?!17487648)1\d{12}(\d{3})?\b/g, 'TIME'),
  );
}

test.each(['README.md', 'docs/tutorial.md'])(
  'runs every command of the tour in %s, with the answers shown',
  async (file) => {
    const steps = toSteps(readBlocks(readSection(file, 'Tour')));
    const folder = await mkdtemp(join(tmpdir(), 'vigil-tour-'));
    await symlink(resolve('node_modules'), join(folder, 'node_modules'));
    try {
      const script = steps.map(({ commands }) => `${commands}\nprintf '${END_OF_STEP}'\n`).join('');
      const result = await runShell(script, { url: service.url, password: ADMIN.password, cwd: folder });
      const answers = result.stdout.split(PRINTED_END);
      const heard = withoutChance(answers);
      const shown = withoutChance(steps.map(({ answer }) => answer ?? ''));
      expect(steps.map(({ commands }, at) => ({ commands, answer: heard[at] }))).toEqual(
        steps.map(({ commands }, at) => ({ commands, answer: shown[at] })),
      );
      expect({ code: result.code, stderr: result.stderr }).toEqual({ code: 0, stderr: '' });
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
  60_000,
);
