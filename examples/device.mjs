// A device over MQTT: sends its temperature every second and carries out commands.
// Usage: node device.mjs mqtt://127.0.0.1:1883 sensor-1 sensor 'a key of the machine'
import mqtt from 'mqtt';

const [url, clientId, username, password] = process.argv.slice(2);
const device = mqtt.connect(url, { clientId, username, password });

device.on('connect', () => device.subscribe('base/commands/#', { qos: 1 }));
device.on('error', ({ message }) => console.error(message));
device.on('message', (_topic, payload) => {
  const { _id, command, params } = JSON.parse(payload);
  console.log('command', command, params);
  device.publish(`base/commands/${_id}/result`, JSON.stringify({ status: 'done' }), { qos: 1 });
});

setInterval(async () => {
  const packet = { time: Date.now(), temperature: 20 + Math.random() };
  await device.publishAsync('base/state', JSON.stringify(packet), { qos: 1 });
  console.log('stored', packet.temperature);
}, 1000);
