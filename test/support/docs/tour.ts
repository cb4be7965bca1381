/** The tours of the documents: their commands are run as written, and their answers compared but for ids, times and tokens. */
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { type Block, readBlocks, readSection } from './markdown.js';
import { runShell, type ShellOptions } from './shell.js';

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

/** A command of a tour with an answer: the one shown, or the one given. */
export interface TourAnswer {
  readonly commands: string;
  readonly answer: string | undefined;
}

/** Runs the tour of a document against a fresh installation. */
export async function runTour(
  file: string,
  options: Omit<ShellOptions, 'cwd'>,
): Promise<{ given: TourAnswer[]; shown: TourAnswer[]; code: number; stderr: string }> {
  const steps = toSteps(readBlocks(readSection(file, 'Tour')));
  const folder = await mkdtemp(join(tmpdir(), 'vigil-tour-'));
  await symlink(resolve('node_modules'), join(folder, 'node_modules'));
  try {
    const script = steps.map(({ commands }) => `${commands}\nprintf '${END_OF_STEP}'\n`).join('');
    const { code, stdout, stderr } = await runShell(script, { ...options, cwd: folder });
    const [received, listed] = [stdout.split(PRINTED_END), steps.map(({ answer }) => answer ?? '')].map(withoutChance);
    const withCommands = (answers: readonly string[] = []) =>
      steps.map(({ commands }, at) => ({ commands, answer: answers[at] }));
    return { given: withCommands(received), shown: withCommands(listed), code, stderr };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
