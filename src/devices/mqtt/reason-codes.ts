/** Reason codes of MQTT 5 (section 2.4). Earlier versions have codes only in CONNACK and SUBACK. */

export const REASON = {
  success: 0x00,
  disconnectWithWill: 0x04,
  noSubscription: 0x11,
  unspecified: 0x80,
  malformedPacket: 0x81,
  protocolError: 0x82,
  implementationError: 0x83,
  unsupportedVersion: 0x84,
  clientIdInvalid: 0x85,
  wrongCredentials: 0x86,
  notAuthorized: 0x87,
  serverBusy: 0x89,
  shuttingDown: 0x8b,
  badAuthMethod: 0x8c,
  keepAliveTimeout: 0x8d,
  takenOver: 0x8e,
  filterInvalid: 0x8f,
  topicInvalid: 0x90,
  packetIdNotFound: 0x92,
  receiveMaximumExceeded: 0x93,
  topicAliasInvalid: 0x94,
  packetTooLarge: 0x95,
  quotaExceeded: 0x97,
  payloadInvalid: 0x99,
  retainNotSupported: 0x9a,
  sharedNotSupported: 0x9e,
  subscriptionIdsNotSupported: 0xa1,
} as const;

/** From this code on, it means a failure. */
export const FIRST_FAILURE = 0x80;

/** Ends a connection (section 4.13). */
export class ProtocolError extends Error {
  constructor(
    message: string,
    readonly reasonCode: number = REASON.protocolError,
  ) {
    super(message);
  }
}

/** For bytes that cannot be parsed. */
export const malformed = (message: string): ProtocolError => new ProtocolError(message, REASON.malformedPacket);
