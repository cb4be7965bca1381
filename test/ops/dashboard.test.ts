/** What the dashboard and the alerts ask for is there. */
import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { parseYaml } from '@redocly/openapi-core';
import { useService } from '../support/fixture.js';

const service = useService({ env: { OPS_PORT: '0' } });

const WORDS = new Set(
  'sum by le rate increase time histogram_quantile topk max count and instance status method route transport event up job'.split(
    ' ',
  ),
);

/** The names of metrics in expressions of Prometheus. */
function metricsIn(expression: string): string[] {
  const bare = expression
    .replace(/"[^"]*"/g, '')
    .replace(/\{[^}]*\}/g, '')
    .replace(/\[[^\]]*\]/g, '');
  return (bare.match(/[a-z_][a-z0-9_]*/g) ?? []).filter((word) => !WORDS.has(word));
}

async function known(): Promise<Set<string>> {
  // A histogram, and what is counted by labels, shows when there was something to count.
  await service.admin('GET', 'objects');
  const text = await (await fetch(`${service.service.opsUrl}/metrics`)).text();
  const names = [...text.matchAll(/^# TYPE (\S+) (\S+)/gm)].flatMap(([, name = '', type]) =>
    type === 'histogram' ? [name, `${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
  );
  return new Set(names);
}

test('uses only existing metrics in the dashboard', async () => {
  const { panels } = JSON.parse(readFileSync('scripts/ops/dashboard.json', 'utf8')) as {
    panels: { title: string; targets: { expr: string }[] }[];
  };
  const names = await known();
  const missing = panels.flatMap(({ title, targets }) =>
    targets.flatMap(({ expr }) =>
      metricsIn(expr)
        .filter((name) => !names.has(name))
        .map((name) => `${title}: ${name}`),
    ),
  );
  expect(missing).toEqual([]);
  expect(new Set(panels.flatMap(({ targets }) => targets.flatMap(({ expr }) => metricsIn(expr)))).size).toBeGreaterThan(
    15,
  );
});

test('uses only existing metrics in the alerts, each with a summary and a severity', async () => {
  const { groups } = parseYaml(readFileSync('scripts/ops/alerts.yml', 'utf8')) as {
    groups: { rules: { alert: string; expr: string; labels: object; annotations: object }[] }[];
  };
  const names = await known();
  const rules = groups.flatMap((group) => group.rules);
  expect(rules.flatMap(({ expr }) => metricsIn(expr)).filter((name) => !names.has(name))).toEqual([]);
  for (const rule of rules) {
    expect(rule.labels).toEqual({ severity: expect.stringMatching(/^(page|look)$/) });
    expect(rule.annotations).toEqual({ summary: expect.any(String) });
  }
});
