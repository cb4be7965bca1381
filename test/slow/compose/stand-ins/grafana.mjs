/** Instead of Grafana: tells what a Grafana of the same environment, user and mounts would find. */
import { accessSync, constants, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';

const { GF_PATHS_PROVISIONING: provisioning, GF_SECURITY_ADMIN_PASSWORD__FILE: passwordFile } = process.env;
const files = (folder) => readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8'));
const [source] = files(join(provisioning, 'datasources'));
const [provider] = files(join(provisioning, 'dashboards'));
const folder = /path: *([^ }]+)/.exec(provider)[1];
const dashboards = readdirSync(folder).filter((name) => name.endsWith('.json'));
writeFileSync('/var/lib/grafana/grafana.db', '');
accessSync('/tmp', constants.W_OK);
const url = /url: *(\S+)/.exec(source)[1];

createServer(async (_request, response) => {
  const found = await fetch(`${url}/api/v1/targets`).then((answer) => answer.json());
  const titles = dashboards.map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')).title);
  const password = readFileSync(passwordFile, 'utf8');
  const targets = found.data.activeTargets.map(({ health }) => health);
  response.end(JSON.stringify({ titles, password, targets }));
}).listen(3000);
