/** What MQTT 5 says with a command: how long it is valid, and where its result is expected (sections 3.3.2.3.3, 3.3.2.3.5, 3.3.2.3.6). */
import type { IPublishPacket } from 'mqtt-packet';
import type { StoredCommand } from '../commands/command-store.js';
import { resultTopicOf } from './topics.js';

type Properties = Required<
  Pick<NonNullable<IPublishPacket['properties']>, 'messageExpiryInterval' | 'responseTopic' | 'correlationData'>
>;

/** `prefix` precedes the topics of the device. */
export function toProperties({ _id, expires }: StoredCommand, prefix: string, nowMs: number): Properties {
  return {
    messageExpiryInterval: Math.max(1, Math.ceil((expires - nowMs) / 1_000)),
    responseTopic: `${prefix}${resultTopicOf(_id)}`,
    correlationData: Buffer.from(_id),
  };
}
