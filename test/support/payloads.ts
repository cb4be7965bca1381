/**
 * Payloads as the documentation of each sender publishes them, with other identifiers, and the packets that they are: times in ms, speeds
 * in km/h. Long because it is one table of all senders.
 */
import type { SourceKindName } from '../../src/core/source-kinds.js';
import { SENDER_PAYLOADS } from './sender-payloads.js';

export interface Payload {
  readonly kind: SourceKindName;
  readonly name: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly map?: object;
  readonly body: unknown;
  /** By which the object of each packet is found. */
  readonly device: string;
  /** All fields of each packet. */
  readonly packets: readonly Readonly<Record<string, unknown>>[];
}

const DEVICE_INFO = {
  tenantId: '52f14cd4-c6f1-4fbd-8f87-4025e1d49242',
  tenantName: 'ChirpStack',
  applicationName: 'Test application',
  deviceProfileName: 'Test device-profile',
  deviceName: 'Garden',
  devEui: '0101010101010101',
  tags: { key: 'value' },
};

const CHIRPSTACK_UP = {
  deduplicationId: '3ac7e3c4-4401-4b8d-9386-a5c902f9202d',
  time: '2022-07-18T09:34:15.775023242+00:00',
  deviceInfo: DEVICE_INFO,
  devAddr: '00189440',
  dr: 1,
  fPort: 1,
  data: 'qg==',
  rxInfo: [
    { gatewayId: '0016c001f153a14d', uplinkId: 4217106254, rssi: -96, snr: 12.5, context: 'E3OWOQ==' },
    { gatewayId: '0016c001f153a14c', uplinkId: 4217106255, rssi: -36, snr: 10.5, context: 'E3OWOQ==' },
  ],
  txInfo: { frequency: 867100000, modulation: { lora: { bandwidth: 125000, spreadingFactor: 11 } } },
};

const TTN = {
  end_device_ids: {
    device_id: 'dev1',
    application_ids: { application_id: 'app1' },
    dev_eui: '0004A30B001C0530',
    join_eui: '800000000000000C',
    dev_addr: '00BCB929',
  },
  correlation_ids: ['gs:uplink:01', 'as:up:01E0WZGT6Y7657CPFPE5WEYDSQ'],
  received_at: '2020-02-12T15:15:45.787654321Z',
};

const TRACCAR = {
  position: {
    id: 2147698135,
    attributes: { priority: 1, sat: 14, ignition: true, motion: true, odometer: 101944000, batteryLevel: 85 },
    deviceId: 134,
    protocol: 'teltonika',
    serverTime: '2024-05-20T14:30:00.000+00:00',
    deviceTime: '2024-05-20T14:29:55.000+00:00',
    fixTime: '2024-05-20T14:29:55.000+00:00',
    outdated: false,
    valid: true,
    latitude: -6.1769233,
    longitude: 106.99672,
    altitude: 21,
    speed: 10,
    course: 117,
    address: null,
    accuracy: 0,
    network: null,
  },
  device: { id: 134, attributes: {}, groupId: 1, name: 'Truck', uniqueId: '123456789012345', status: 'online' },
};

const TRACCAR_PACKET = {
  time: Date.UTC(2024, 4, 20, 14, 29, 55),
  lat: -6.1769233,
  lon: 106.99672,
  speed: 18.52,
  angle: 117,
  height: 21,
  battery: 85,
  batteryLevel: 85,
  priority: 1,
  sat: 14,
  ignition: true,
  motion: true,
  odometer: 101944000,
  protocol: 'teltonika',
  outdated: false,
  valid: true,
};

const METRIC = {
  fields: { field_1: 30, field_2: 4, n_images: 660 },
  name: 'docker',
  tags: { host: 'raynor', engine: 'x' },
  timestamp: 1458229140,
};
const METRIC_PACKET = {
  'docker.field_1': 30,
  'docker.field_2': 4,
  'docker.n_images': 660,
  tags: { engine: 'x' },
  time: 1_458_229_140_000,
};

const FEATURE = {
  type: 'Feature',
  geometry: { type: 'Point', coordinates: [-122.030581, 37.3318] },
  properties: {
    timestamp: '2015-10-01T08:00:00-0700',
    altitude: 0,
    speed: 4,
    horizontal_accuracy: 30,
    vertical_accuracy: -1,
    motion: ['driving', 'stationary'],
    pauses: false,
    activity: 'other_navigation',
    desired_accuracy: 100,
    locations_in_payload: 1,
    battery_state: 'charging',
    battery_level: 0.89,
    device_id: 'phone-1',
    wifi: '',
  },
};
const FEATURE_PACKET = {
  time: Date.UTC(2015, 9, 1, 15),
  lat: 37.3318,
  lon: -122.030581,
  speed: 14.4,
  height: 0,
  accuracy: 30,
  battery: 89,
  motion: ['driving', 'stationary'],
  pauses: false,
  activity: 'other_navigation',
  desired_accuracy: 100,
  battery_state: 'charging',
};

const SHELLY = { src: 'shellypro4pm-f008d1d8b8b8', dst: 'vigil', method: 'NotifyStatus' };
const SWITCH = { id: 0, apower: 8.9, output: true, aenergy: { total: 6.532, minute_ts: 1626935779 } };

export const PAYLOADS: readonly Payload[] = [
  {
    kind: 'osmand',
    name: 'a query',
    query: { id: '123456', lat: '52.5', lon: '13.4', timestamp: '1795500000', speed: '10', bearing: '90', batt: '81' },
    body: '',
    device: '123456',
    packets: [{ time: 1_795_500_000_000, lat: 52.5, lon: 13.4, speed: 18.52, angle: 90, battery: 81 }],
  },
  {
    kind: 'osmand',
    name: 'JSON',
    body: {
      location: {
        timestamp: '2020-01-01T00:00:00.000Z',
        coords: { latitude: 52.5, longitude: 13.4, accuracy: 5, speed: 10, heading: 90, altitude: 34 },
        is_moving: false,
        battery: { level: 0.5, is_charging: false },
      },
      device_id: '48241179',
    },
    device: '48241179',
    packets: [
      {
        time: Date.UTC(2020, 0, 1),
        lat: 52.5,
        lon: 13.4,
        speed: 36,
        angle: 90,
        height: 34,
        accuracy: 5,
        battery: 50,
        charge: false,
        motion: false,
      },
    ],
  },
  {
    kind: 'owntracks',
    name: 'a location',
    headers: { 'x-limit-u': 'jane', 'x-limit-d': 'phone' },
    body: {
      _type: 'location',
      lat: 48.85833,
      lon: 2.29513,
      tst: 1497476456,
      vel: 54,
      cog: 271,
      batt: 41,
      acc: 5,
      tid: 'JJ',
    },
    device: 'jane-phone',
    packets: [
      {
        time: 1_497_476_456_000,
        lat: 48.85833,
        lon: 2.29513,
        speed: 54,
        angle: 271,
        battery: 41,
        accuracy: 5,
        tid: 'JJ',
      },
    ],
  },
  { kind: 'traccar', name: 'a position', body: TRACCAR, device: '123456789012345', packets: [TRACCAR_PACKET] },
  {
    kind: 'traccar',
    name: 'an event of a position, with times in ms',
    body: {
      ...TRACCAR,
      position: { ...TRACCAR.position, fixTime: 1663248932000, attributes: {} },
      event: {
        id: 256457859,
        attributes: {},
        type: 'ignitionOn',
        eventTime: 1663248932000,
        geofenceId: 0,
        maintenanceId: 0,
      },
    },
    device: '123456789012345',
    packets: [
      {
        time: 1_663_248_932_000,
        event: 'ignitionOn',
        lat: -6.1769233,
        lon: 106.99672,
        speed: 18.52,
        angle: 117,
        height: 21,
        protocol: 'teltonika',
        outdated: false,
        valid: true,
      },
    ],
  },
  {
    kind: 'traccar',
    name: 'an event with the names of what it is about, and an alarm of its own',
    body: {
      ...TRACCAR,
      position: { fixTime: 1663248932000, attributes: { alarm: 'hardBraking,lowBattery' } },
      event: { attributes: { alarm: 'lowBattery' }, type: 'alarm', eventTime: 1663248932000, geofenceId: 3 },
      geofence: { id: 3, name: 'Depot', attributes: {} },
      maintenance: { id: 4, name: 'Oil', attributes: {} },
    },
    device: '123456789012345',
    packets: [
      {
        time: 1_663_248_932_000,
        event: 'alarm',
        alarm: 'lowBattery',
        geofence: 3,
        geofenceName: 'Depot',
        maintenance: 'Oil',
      },
    ],
  },
  {
    kind: 'traccar',
    name: 'that a device is offline',
    body: {
      event: {
        id: 43334,
        attributes: {},
        type: 'deviceOffline',
        eventTime: '2024-05-10T10:45:34.984+00:00',
        geofenceId: 0,
      },
      device: TRACCAR.device,
    },
    device: '123456789012345',
    packets: [{ time: Date.UTC(2024, 4, 10, 10, 45, 34, 984), event: 'deviceOffline', online: false }],
  },
  {
    kind: 'chirpstack',
    name: 'an uplink',
    query: { event: 'up' },
    body: { ...CHIRPSTACK_UP, object: { temperature: 21.5, time: 'now' } },
    device: '0101010101010101',
    packets: [
      {
        _id: '3ac7e3c4-4401-4b8d-9386-a5c902f9202d',
        time: Date.UTC(2022, 6, 18, 9, 34, 15, 775),
        temperature: 21.5,
        rssi: -36,
        snr: 10.5,
        fPort: 1,
        fCnt: 0,
        dr: 1,
      },
    ],
  },
  {
    kind: 'chirpstack',
    name: 'an uplink without a decoder and a query',
    body: CHIRPSTACK_UP,
    device: '0101010101010101',
    packets: [
      {
        _id: '3ac7e3c4-4401-4b8d-9386-a5c902f9202d',
        time: Date.UTC(2022, 6, 18, 9, 34, 15, 775),
        data: 'qg==',
        rssi: -36,
        snr: 10.5,
        fPort: 1,
        fCnt: 0,
        dr: 1,
      },
    ],
  },
  {
    kind: 'chirpstack',
    name: 'a status',
    query: { event: 'status' },
    body: {
      deduplicationId: 'bf2a',
      time: '2022-07-18T09:35:06.927Z',
      deviceInfo: DEVICE_INFO,
      margin: 10,
      batteryLevel: 88.3,
    },
    device: '0101010101010101',
    packets: [{ _id: 'bf2a', time: Date.UTC(2022, 6, 18, 9, 35, 6, 927), margin: 10, battery: 88.3 }],
  },
  {
    kind: 'chirpstack',
    name: 'a location',
    query: { event: 'location' },
    body: {
      deduplicationId: '63d8',
      time: '2022-07-18T09:55:11.059Z',
      deviceInfo: DEVICE_INFO,
      location: { latitude: 37.344214, longitude: -8.839375, altitude: 2 },
    },
    device: '0101010101010101',
    packets: [{ _id: '63d8', time: Date.UTC(2022, 6, 18, 9, 55, 11, 59), lat: 37.344214, lon: -8.839375, height: 2 }],
  },
  {
    kind: 'chirpstack',
    name: 'no join',
    query: { event: 'join' },
    body: { deduplicationId: 'c9db', time: '2022-07-18T09:33:28.823Z', deviceInfo: DEVICE_INFO, devAddr: '00189440' },
    device: '0101010101010101',
    packets: [],
  },
  {
    kind: 'chirpstack',
    name: 'a join that the map asks for',
    query: { event: 'join' },
    map: { events: true },
    body: { deduplicationId: 'c9db', time: '2022-07-18T09:33:28.823Z', deviceInfo: DEVICE_INFO, devAddr: '00189440' },
    device: '0101010101010101',
    packets: [{ _id: 'c9db', time: Date.UTC(2022, 6, 18, 9, 33, 28, 823), event: 'join', devAddr: '00189440' }],
  },
  {
    kind: 'ttn',
    name: 'an uplink',
    body: {
      ...TTN,
      uplink_message: {
        f_port: 1,
        f_cnt: 1234,
        frm_payload: 'gkHe',
        decoded_payload: { temperature: 1, luminosity: 0.64 },
        rx_metadata: [{ gateway_ids: { gateway_id: 'gtw1' }, rssi: -35, channel_rssi: -35, snr: 5.2 }],
        locations: { user: { latitude: 37.97155, longitude: 23.72678, altitude: 2, source: 'SOURCE_REGISTRY' } },
      },
    },
    device: 'dev1',
    packets: [
      {
        _id: 'as:up:01E0WZGT6Y7657CPFPE5WEYDSQ',
        time: Date.UTC(2020, 1, 12, 15, 15, 45, 787),
        temperature: 1,
        luminosity: 0.64,
        rssi: -35,
        snr: 5.2,
        fPort: 1,
        fCnt: 1234,
        lat: 37.97155,
        lon: 23.72678,
        height: 2,
        source: 'SOURCE_REGISTRY',
      },
    ],
  },
  {
    kind: 'ttn',
    name: 'a location',
    body: {
      ...TTN,
      location_solved: {
        service: 'lora-cloud-geolocation-v3-gnss',
        location: {
          latitude: 48.85,
          longitude: 2.29,
          altitude: 35,
          accuracy: 20,
          source: 'SOURCE_LORA_TDOA_GEOLOCATION',
        },
      },
    },
    device: 'dev1',
    packets: [
      {
        _id: 'as:up:01E0WZGT6Y7657CPFPE5WEYDSQ',
        time: Date.UTC(2020, 1, 12, 15, 15, 45, 787),
        lat: 48.85,
        lon: 2.29,
        height: 35,
        accuracy: 20,
        source: 'SOURCE_LORA_TDOA_GEOLOCATION',
      },
    ],
  },
  {
    kind: 'ttn',
    name: 'no join',
    body: { ...TTN, join_accept: { session_key_id: 'AXBS' } },
    device: 'dev1',
    packets: [],
  },
  { kind: 'telegraf', name: 'a metric', body: METRIC, device: 'raynor', packets: [METRIC_PACKET] },
  {
    kind: 'telegraf',
    name: 'a batch with times in s, ms, µs and ns',
    body: JSON.stringify({ metrics: [1, 2, 3, 4].map((timestamp) => ({ ...METRIC, timestamp })) })
      .replace('"timestamp":2', '"timestamp":1458229140000')
      .replace('"timestamp":3', '"timestamp":1458229140000000')
      .replace('"timestamp":4', '"timestamp":1458229140000000000')
      .replace('"timestamp":1}', '"timestamp":1458229140}'),
    device: 'raynor',
    packets: [METRIC_PACKET, METRIC_PACKET, METRIC_PACKET, METRIC_PACKET],
  },
  {
    kind: 'telegraf',
    name: 'a metric with another tag for the device',
    map: { object: 'engine' },
    body: METRIC,
    device: 'x',
    packets: [{ ...METRIC_PACKET, tags: { host: 'raynor' } }],
  },
  {
    kind: 'senml',
    name: 'a single record (RFC 8428, 5.1.1)',
    body: [{ n: 'urn:dev:ow:10e2073a01080063', u: 'Cel', v: 23.1 }],
    device: 'urn:dev:ow:10e2073a01080063',
    packets: [{ temperature: 23.1 }],
  },
  {
    kind: 'senml',
    name: 'several records with base fields (RFC 8428, 5.1.2)',
    body: [
      { bn: 'urn:dev:ow:10e2073a0108006:', bt: 1.276020076001e9, bu: 'A', bver: 5, n: 'voltage', u: 'V', v: 120.1 },
      { n: 'current', t: -5, v: 1.2 },
      { n: 'current', t: -4, v: 1.3 },
      { n: 'current', v: 1.7 },
    ],
    device: 'urn:dev:ow:10e2073a0108006',
    packets: [
      { time: 1_276_020_076_001, voltage: 120.1, current: 1.7 },
      { time: 1_276_020_071_001, current: 1.2 },
      { time: 1_276_020_072_001, current: 1.3 },
    ],
  },
  {
    kind: 'senml',
    name: 'positions without names (RFC 8428, 5.1.3)',
    body: [
      { bn: 'urn:dev:ow:10e2073a01080063', bt: 1.320067464e9, bu: '%RH', v: 20 },
      { u: 'lon', v: 24.30621 },
      { u: 'lat', v: 60.07965 },
      { t: 60, v: 20.3 },
      { u: 'lon', t: 60, v: 24.30622 },
      { u: 'lat', t: 60, v: 60.07965 },
      { u: '%EL', t: 150, v: 98 },
    ],
    device: 'urn:dev:ow:10e2073a01080063',
    packets: [
      { time: 1_320_067_464_000, humidity: 20, lon: 24.30621, lat: 60.07965 },
      { time: 1_320_067_524_000, humidity: 20.3, lon: 24.30622, lat: 60.07965 },
      { time: 1_320_067_614_000, battery: 98 },
    ],
  },
  {
    kind: 'senml',
    name: 'other types of values (RFC 8428, 5.1.4)',
    body: [
      { bn: 'urn:dev:ow:10e2073a01080063:', n: 'temp', u: 'Cel', v: 23.1 },
      { n: 'label', vs: 'Machine Room' },
      { n: 'open', vb: false },
      { n: 'nfc-reader', vd: 'aGkgCg' },
      { n: 'speed', u: 'm/s', v: 10 },
    ],
    device: 'urn:dev:ow:10e2073a01080063',
    packets: [{ temp: 23.1, label: 'Machine Room', open: false, 'nfc-reader': 'aGkgCg', speed: 36 }],
  },
  {
    kind: 'flespi',
    name: 'messages',
    body: [
      {
        'channel.id': 429,
        ident: '123456789012345',
        'position.altitude': 280,
        'position.direction': 90,
        'position.latitude': 54.690885,
        'position.longitude': 25.265425,
        'position.satellites': 8,
        'position.speed': 37,
        'position.valid': true,
        'protocol.id': 14,
        'server.timestamp': 1702366833.1,
        timestamp: 1702366832.965264,
      },
    ],
    device: '123456789012345',
    packets: [
      {
        time: 1_702_366_832_965,
        'channel.id': 429,
        'position.altitude': 280,
        'position.direction': 90,
        'position.latitude': 54.690885,
        'position.longitude': 25.265425,
        'position.satellites': 8,
        'position.speed': 37,
        'position.valid': true,
        'protocol.id': 14,
        'server.timestamp': 1702366833.1,
      },
    ],
  },
  { kind: 'overland', name: 'locations', body: { locations: [FEATURE] }, device: 'phone-1', packets: [FEATURE_PACKET] },
  {
    kind: 'overland',
    name: 'a location of unknown speed',
    body: {
      locations: [{ ...FEATURE, properties: { timestamp: '2015-10-01T15:00:00Z', speed: -1, device_id: 'phone-1' } }],
    },
    device: 'phone-1',
    packets: [{ time: FEATURE_PACKET.time, lat: 37.3318, lon: -122.030581 }],
  },
  {
    kind: 'shelly',
    name: 'a status',
    body: { ...SHELLY, params: { ts: 1626935739.79, 'switch:0': SWITCH } },
    device: 'shellypro4pm-f008d1d8b8b8',
    packets: [{ time: 1_626_935_739_790, 'switch:0': SWITCH }],
  },
  {
    kind: 'shelly',
    name: 'an event',
    body: {
      ...SHELLY,
      method: 'NotifyEvent',
      params: { ts: 1626935739.79, events: [{ component: 'input:0', event: 'btn_down' }] },
    },
    device: 'shellypro4pm-f008d1d8b8b8',
    packets: [{ time: 1_626_935_739_790, events: [{ component: 'input:0', event: 'btn_down' }] }],
  },
  ...SENDER_PAYLOADS,
];

/** What each sender takes as done, where that is not `{success, count}`. */
export const ANSWERS: Readonly<Partial<Record<SourceKindName, string>>> = {
  osmand: '',
  owntracks: '[]',
  overland: '{"result":"ok"}',
};
