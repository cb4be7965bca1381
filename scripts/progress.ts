// How far a script has come: a bar on a terminal, a line now and then elsewhere.
import cliProgress from 'cli-progress';

/** Shows how much is done; of what has no end, only how much. */
export function startProgress(total: number) {
  const endless = total === Infinity;
  if (process.stdout.isTTY) {
    const format = endless ? ' {value} packets' : ' {bar} {percentage}% | {value}/{total} packets | ETA {eta}s';
    const options = { format, stream: process.stdout, gracefulExit: false, hideCursor: true, etaBuffer: 50 };
    const bar = new cliProgress.SingleBar(options, cliProgress.Presets.shades_classic);
    bar.start(endless ? 0 : total, 0);
    return { show: (done: number) => bar.update(done), stop: () => bar.stop() };
  }
  let told = Date.now();
  const show = (done: number) => {
    if (Date.now() - told < 5000 && done < total) return;
    told = Date.now();
    console.log(endless ? `${done} packets` : `${done} of ${total} packets`);
  };
  return { show, stop: () => undefined };
}
