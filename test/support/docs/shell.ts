/** Runs the commands that a document shows, as written, against the service of a test. */
import { execFile } from 'node:child_process';

const SHOWN_URL = 'http://127.0.0.1:8080';

export interface ShellResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ShellOptions {
  /** Takes the place of the address that the documents show. */
  readonly url: string;
  /** Takes the place of the password that the first start printed. */
  readonly password: string;
  readonly cwd?: string;
}

/** Runs commands in `bash`, and stops at the first one that fails. */
export function runShell(commands: string, { url, password, cwd }: ShellOptions): Promise<ShellResult> {
  const script = commands.replaceAll(SHOWN_URL, url).replace(/^PASSWORD=.*$/m, `PASSWORD='${password}'`);
  return new Promise((done) => {
    execFile('bash', ['-c', `set -eo pipefail\n${script}`], { cwd }, (error, stdout, stderr) => {
      done({ code: error === null ? 0 : Number(error.code), stdout, stderr });
    });
  });
}
