/** How a device connects: commands and programs with the real address, the real id and the real token. */
import { BASE } from '../state/location.js';

export interface Connection {
  /** Of the API, without the path of a route: `https://site.example/vigil`. */
  readonly url: string;
  readonly host: string;
  /** null if devices cannot connect over MQTT. */
  readonly mqtt: { readonly scheme: string; readonly port: string } | null;
  readonly id: string;
  readonly token: string;
}

/** The address as the browser reached it; the port of MQTT as the server reports it. */
export function connectionOf(id: string, token: string): Connection {
  const [scheme = '', port = ''] =
    document.querySelector<HTMLMetaElement>('meta[name=vigil-mqtt]')?.content.split(':') ?? [];
  const mqtt = scheme === '' ? null : { scheme, port };
  return { url: `${location.origin}${BASE}`, host: location.hostname, mqtt, id, token };
}

const SAMPLE = '{"lat": 48.137, "lon": 11.575, "speed": 42}';
/** Text between single quotes of a shell. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

export type ClientKind = 'curl' | 'mosquitto' | 'node' | 'arduino';

export function clientKindsOf({ mqtt }: Connection): ClientKind[] {
  return mqtt === null ? ['curl'] : ['curl', 'mosquitto', 'node', 'arduino'];
}

export const CLIENT_KIND_NAMES: Readonly<Record<ClientKind, string>> = {
  curl: 'curl',
  mosquitto: 'mosquitto_pub',
  node: 'Node.js',
  arduino: 'Arduino',
};

export function textOf(way: ClientKind, connection: Connection): string {
  return { curl: toCurl, mosquitto: toMosquitto, node: toNode, arduino: toArduino }[way](connection);
}

const toCurl = ({ url, id, token }: Connection): string =>
  [
    `curl ${quoted(`${url}/api/v1/objects/${encodeURIComponent(id)}/packets`)} \\`,
    `  -H ${quoted(`Authorization: Bearer ${token}`)} \\`,
    `  -H 'Content-Type: application/json' \\`,
    `  -d ${quoted(SAMPLE)}`,
  ].join('\n');

const toMosquitto = ({ host, mqtt, id, token }: Connection): string =>
  [
    `mosquitto_pub -h ${host} -p ${mqtt?.port}${mqtt?.scheme === 'mqtts' ? ' --tls-use-os-certs' : ''} \\`,
    `  -i ${quoted(id)} -u device -P ${quoted(token)} \\`,
    `  -q 1 -t base/state -m ${quoted(SAMPLE)}`,
  ].join('\n');

const toNode = ({ host, mqtt, id, token }: Connection): string =>
  `// npm install mqtt
import mqtt from 'mqtt';

const client = mqtt.connect('${mqtt?.scheme}://${host}:${mqtt?.port}', {
  clientId: ${JSON.stringify(id)},
  username: 'device',
  password: ${JSON.stringify(token)},
});
const send = () =>
  client.publish('base/state', JSON.stringify({ temperature: 21.5, lat: 48.137, lon: 11.575 }), { qos: 1 });
send();
setInterval(send, 5000);

client.on('connect', () => client.subscribe('base/commands/+', { qos: 1 }));
client.on('message', (topic, payload) => {
  const { _id, command, params } = JSON.parse(String(payload));
  console.log(command, params);
  client.publish(\`base/commands/\${_id}/result\`, JSON.stringify({ status: 'done' }), { qos: 1 });
});`;

const toArduino = ({ host, mqtt, id, token }: Connection): string =>
  `#include <WiFi.h>
#include <ArduinoJson.h>   // version 7
#include <PubSubClient.h>  // set its buffer: the token is long

WiFiClient net;
PubSubClient mqtt(net);
unsigned long sentMs = 0;

void onCommand(char* topic, byte* payload, unsigned int length) {
  JsonDocument command;
  if (deserializeJson(command, payload, length)) return;
  Serial.println(command["command"].as<String>());
  String result = "base/commands/" + command["_id"].as<String>() + "/result";
  mqtt.publish(result.c_str(), "{\\"status\\": \\"done\\"}");
}

void setup() {
  Serial.begin(115200);
  WiFi.begin("your network", "its password");
  mqtt.setServer("${host}", ${mqtt?.port});
  mqtt.setBufferSize(2048);
  mqtt.setCallback(onCommand);
}

void loop() {
  if (!mqtt.connected()) {
    delay(5000);
    if (mqtt.connect(${JSON.stringify(id)}, "device", ${JSON.stringify(token)})) mqtt.subscribe("base/commands/+", 1);
  }
  mqtt.loop();
  if (millis() - sentMs < 5000) return;
  sentMs = millis();
  mqtt.publish("base/state", "{\\"temperature\\": 21.5, \\"lat\\": 48.137, \\"lon\\": 11.575}");
}`;
