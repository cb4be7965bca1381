/** What is counted of packed history. */
import { Counter, Gauge, type Registry } from 'prom-client';

export interface PackingMetrics {
  /** Rows were replaced by buckets; the sizes are those of the packets as rows, and of the buckets. */
  packed(step: {
    readonly packets: number;
    readonly buckets: number;
    readonly rowBytes: number;
    readonly bucketBytes: number;
  }): void;
  /** A bucket that rows should be added to is damaged. */
  damaged(): void;
  /** A read met a bucket that is damaged. */
  damagedRead(): void;
  /** An object could not be packed for a reason of its own. */
  failed(): void;
  /** A pass over all objects is complete; when it began. */
  passed(beganMs: number): void;
}

export const NO_PACKING_METRICS: PackingMetrics = {
  packed: () => undefined,
  damaged: () => undefined,
  damagedRead: () => undefined,
  failed: () => undefined,
  passed: () => undefined,
};

export function createPackingMetrics(register: Registry): PackingMetrics {
  const registers = [register];
  const count = (name: string, help: string): Counter =>
    new Counter({ name: `vigil_packing_${name}`, help, registers });
  const packets = count('packets_total', 'Packets that this instance has packed');
  const buckets = count('buckets_total', 'Buckets of packed history that this instance has written');
  const rowBytes = count('row_bytes_total', 'Bytes of the packed packets before they were packed');
  const bucketBytes = count('bucket_bytes_total', 'Bytes of the written buckets');
  const damaged = count('damaged_total', 'Buckets that could not be extended because they are damaged');
  const damagedReads = count('damaged_reads_total', 'Reads that met a bucket which is damaged');
  const failed = count('failures_total', 'Attempts to pack an object that failed, after which others were packed');
  const passed = new Gauge({
    name: 'vigil_packing_passed_timestamp_seconds',
    help: 'When the last pass over all objects began that this instance has completed; 0 before the first',
    registers,
  });
  return {
    packed(step) {
      packets.inc(step.packets);
      buckets.inc(step.buckets);
      rowBytes.inc(step.rowBytes);
      bucketBytes.inc(step.bucketBytes);
    },
    damaged: () => damaged.inc(),
    damagedRead: () => damagedReads.inc(),
    failed: () => failed.inc(),
    passed: (beganMs) => passed.set(beganMs / 1_000),
  };
}
