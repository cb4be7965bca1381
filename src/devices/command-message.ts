/** The message in which a device gets a command over MQTT. */
import type { StoredCommand } from '../commands/command-store.js';
import { toDelivery } from '../core/command.js';
import type { Declarations } from '../core/model.js';
import { toOwnTracksCommand } from './sources/owntracks.js';
import { COMMANDS_TOPIC } from './topics.js';

/** `ownTracksTopic`: where OwnTracks expects its commands, which have a form of their own; null for other devices. */
export function toMessage(
  command: StoredCommand,
  declared: Declarations,
  ownTracksTopic: string | null,
): { topic: string; payload: string } {
  const action = declared.actions.get(command.command);
  const { topic, payload } = toDelivery(command, action);
  if (topic !== null || ownTracksTopic === null) {
    return { topic: topic ?? `${COMMANDS_TOPIC}/${command.command}`, payload };
  }
  const own = toOwnTracksCommand(command.command, command.params);
  return { topic: ownTracksTopic, payload: action?.payload === undefined ? JSON.stringify(own) : payload };
}
