/** The form of topic names and filters (section 4.7). */
import { LIMITS } from '../../core/limits.js';

/** [MQTT-4.7.1-1], [MQTT-4.7.3-1]: at least one character, and no wildcard. */
export const isTopicName = (topic: string): boolean => topic !== '' && !/[+#]/.test(topic);

/** [MQTT-4.7.1-1], [MQTT-4.7.1-2]: `#` only as the last level, and wildcards only as whole levels. [MQTT-1.5.4-1]: UTF-8. */
export function isTopicFilter(filter: string): boolean {
  if (filter === '' || filter.length > LIMITS.mqttTopicCharacters || /[\0\ufffd]/.test(filter)) return false;
  const levels = filter.split('/');
  return levels.every((level, index) =>
    /[+#]/.test(level) ? level === '+' || (level === '#' && index === levels.length - 1) : true,
  );
}

/** Section 4.8.2. */
export const isSharedFilter = (filter: string): boolean => filter.startsWith('$share/');
