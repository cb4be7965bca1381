/**
 * Overland (https://github.com/aaronpk/Overland-iOS#api): GeoJSON features in `locations`. The app deletes what it has sent only if the
 * answer is `{"result":"ok"}`.
 */
import { badRequest } from '../../core/errors.js';
import { isObject, type JsonObject } from '../../core/json.js';
import {
  asObject,
  fromMetresPerSecond,
  type Item,
  identifiers,
  JSON_TYPE,
  known,
  parseBody,
  percent,
  present,
  readEach,
  type SourceKind,
  toDegrees,
  toList,
  toNumber,
  toTime,
  without,
} from './kind.js';

const DONE = { type: JSON_TYPE, body: '{"result":"ok"}' };

const TAKEN: ReadonlySet<string> = new Set(
  ['timestamp', 'altitude', 'speed', 'course', 'horizontal_accuracy', 'vertical_accuracy', 'speed_accuracy'].concat(
    ['course_accuracy', 'battery_level', 'device_id', 'unique_id', 'locations_in_payload', 'wifi'],
    ['time', 'id', 'online'],
  ),
);

const matches = (body: unknown): body is JsonObject => isObject(body) && Array.isArray(body.locations);

function readFeature(feature: unknown): Item {
  const { geometry, properties } = asObject(feature);
  if (!isObject(properties)) throw badRequest('expected a GeoJSON feature with "properties"');
  const { coordinates } = asObject(geometry);
  const [lon, lat] = Array.isArray(coordinates) ? coordinates : [];
  const fields = {
    time: toTime(properties.timestamp),
    lat: toDegrees('latitude', lat, 90),
    lon: toDegrees('longitude', lon, 180),
    speed: fromMetresPerSecond(properties.speed),
    angle: known(properties.course),
    height: toNumber(properties.altitude),
    accuracy: known(properties.horizontal_accuracy),
    verticalAccuracy: known(properties.vertical_accuracy),
    battery: percent(properties.battery_level),
    wifi: properties.wifi === '' ? undefined : properties.wifi,
  };
  // Without a device id in its settings, the app writes "".
  const devices = identifiers(properties.device_id, properties.unique_id);
  return { devices, packet: { ...without(properties, TAKEN), ...present(fields) } };
}

export const overland: SourceKind = {
  read(request) {
    const body = parseBody(request);
    if (!matches(body)) throw badRequest('locations: required, a list of GeoJSON features, as Overland sends it');
    return { items: readEach(toList(body.locations), readFeature), answer: DONE, resends: true };
  },
  matches,
};
