/**
 * Reports of presence among packets of the past. They have the service's time: each is put where it came among the data, by the clock of
 * the object, as when it came. Pure.
 */
import type { JsonObject } from '../core/json.js';
import type { CompiledRule } from './evaluate.js';
import { isDataPacket, receivedMsOf } from './packet-reader.js';

/** A report, and its instant by the clock of the object. */
export interface PastReport {
  readonly packet: JsonObject;
  readonly atMs: number;
}

/** Whether the rule asks for it. */
export const readsPresence = ({ singles }: CompiledRule): boolean =>
  singles.some(({ condition }) => {
    if (condition.kind === 'param') return condition.path[0] === 'online';
    return condition.kind === 'online' || (condition.kind === 'expr' && condition.expression.mayDependOn('online'));
  });

export interface ReportReader {
  /** The packets in any order. */
  add(packet: JsonObject): void;
  /** The reports by their instants. */
  end(): readonly PastReport[];
}

export function createReportReader(): ReportReader {
  const arrived: { receivedMs: number; timeMs: number; report: JsonObject | null }[] = [];
  return {
    add(packet) {
      const report = isDataPacket(packet) ? null : packet;
      arrived.push({ receivedMs: receivedMsOf(packet), timeMs: packet.time as number, report });
    },
    end() {
      arrived.sort((one, other) => one.receivedMs - other.receivedMs);
      const reports: PastReport[] = [];
      let newest: { timeMs: number; aheadMs: number } | null = null;
      for (const { receivedMs, timeMs, report } of arrived) {
        if (report !== null) {
          const atMs = newest === null ? timeMs : Math.max(newest.timeMs, receivedMs - newest.aheadMs);
          reports.push({ packet: report, atMs });
        } else if (newest === null || timeMs >= newest.timeMs) newest = { timeMs, aheadMs: receivedMs - timeMs };
      }
      return reports.sort((one, other) => one.atMs - other.atMs);
    },
  };
}
