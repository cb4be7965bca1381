// The resources used by a process, from /proc of Linux; NaN on other systems.
import { readFileSync, writeFileSync } from 'node:fs';

const TICK_MS = 10;
const KIB_PER_MIB = 1_024;

/** The CPU time of a process so far, user and system, in ms. */
export function readCpuMs(processId: number): number {
  const text = read(`/proc/${processId}/stat`);
  // The name in parentheses may contain any character; the two times are the 12th and 13th field after it.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

/** The memory of a process at present, in MiB. */
export const readMemoryMb = (processId: number): number =>
  Number(/^VmRSS:\s+(\d+) kB/m.exec(read(`/proc/${processId}/status`))?.[1]) / KIB_PER_MIB;

/** The peak memory of a process since `resetPeak`, in MiB. */
export function readPeakMb(processId: number): number {
  return Number(/^VmHWM:\s+(\d+) kB/m.exec(read(`/proc/${processId}/status`))?.[1]) / KIB_PER_MIB;
}

export function resetPeak(processId: number): void {
  try {
    writeFileSync(`/proc/${processId}/clear_refs`, '5');
  } catch {
    // Not supported here: the peak is that of the whole lifetime.
  }
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
