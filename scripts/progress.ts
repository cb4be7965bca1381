// Shows the progress of a script: a bar on a terminal, otherwise a line at intervals.
import cliProgress from 'cli-progress';

/** Shows the progress; without a known total, only the amount. */
export function startProgress(total: number) {
  const endless = total === Infinity;
  if (process.stdout.isTTY) {
    const format = endless ? ' {value} packets' : ' {bar} {percentage}% | {value}/{total} packets | ETA {eta}s';
    const options = { format, stream: process.stdout, gracefulExit: false, hideCursor: true, etaBuffer: 50 };
    const bar = new cliProgress.SingleBar(options, cliProgress.Presets.shades_classic);
    bar.start(endless ? 0 : total, 0);
    return { show: (done: number) => bar.update(done), stop: () => bar.stop() };
  }
  let printedMs = Date.now();
  const show = (done: number) => {
    if (Date.now() - printedMs < 5000 && done < total) return;
    printedMs = Date.now();
    console.log(endless ? `${done} packets` : `${done} of ${total} packets`);
  };
  return { show, stop: () => undefined };
}
