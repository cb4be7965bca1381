/** The tour of docs/tutorial.md is walked: every command as it stands there, every answer up to ids, times and tokens. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, test } from '@jest/globals';
import { type Block, readBlocks, readSection } from '../support/docs/markdown.js';
import { ADMIN, useService } from '../support/fixture.js';

const service = useService();
const END_OF_STEP = '\x1e';

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

async function walk(
  steps: readonly Step[],
  folder: string,
): Promise<{ code: number; answers: string[]; said: string }> {
  const script = steps.map(({ commands }) => `${commands}\nprintf '\\036'\n`).join('');
  const given = script
    .replace(/^URL=.*$/m, `URL=${service.url}`)
    .replace(/^PASSWORD=.*$/m, `PASSWORD='${ADMIN.password}'`);
  return new Promise((done) => {
    execFile('bash', ['-c', `set -eo pipefail\n${given}`], { cwd: folder }, (error, stdout, stderr) => {
      done({ code: error === null ? 0 : Number(error.code), answers: stdout.split(END_OF_STEP), said: stderr });
    });
  });
}

test('every command of the tour works in order and answers what docs/tutorial.md shows', async () => {
  const steps = toSteps(readBlocks(readSection('docs/tutorial.md', 'Tour')));
  const folder = await mkdtemp(join(tmpdir(), 'vigil-tour-'));
  await symlink(resolve('node_modules'), join(folder, 'node_modules'));
  try {
    const { code, answers, said } = await walk(steps, folder);
    const heard = withoutChance(answers);
    const shown = withoutChance(steps.map(({ answer }) => answer ?? ''));
    expect(steps.map(({ commands }, at) => ({ commands, answer: heard[at] }))).toEqual(
      steps.map(({ commands }, at) => ({ commands, answer: shown[at] })),
    );
    expect({ code, said }).toEqual({ code: 0, said: '' });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}, 60_000);
