/** What stored packets say of presence: naively, from all packets of one object. */
import type { Document } from 'mongodb';
import { isReport } from './database/documents.js';

/** By time, and then by when they came. */
const inOrder = (packets: readonly Document[]): Document[] =>
  packets.toSorted((one, other) => one.time - other.time || one._ts - other._ts);

export const latestOf = (packets: readonly Document[]): Document | undefined => inOrder(packets).at(-1);

export interface StoredReport {
  readonly packet: Document;
  readonly online: boolean;
  /** The packet before it. */
  readonly before: Document | undefined;
}

/** Packets that say nothing but whether the device is there. */
export function reportsOf(packets: readonly Document[]): StoredReport[] {
  return inOrder(packets).flatMap((packet, nth, all) =>
    isReport(packet) ? [{ packet, online: packet.online, before: all[nth - 1] }] : [],
  );
}
