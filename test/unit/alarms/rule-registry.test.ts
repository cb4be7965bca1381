/** Rules and the changes that concern them. */
import { expect, test } from '@jest/globals';
import { createRuleRegistry, type RuleRegistryOptions } from '../../../src/alarms/rule-registry.js';
import type { Change } from '../../../src/core/change.js';

test('decodes no member of a packet', () => {
  const read: unknown[] = [];
  const change = new Proxy({ store: 'packets', kind: 'created' } as Change, {
    get(target, name) {
      read.push(name);
      return Reflect.get(target, name);
    },
  });
  const registry = createRuleRegistry({} as RuleRegistryOptions, () => undefined);
  expect(registry.apply(change)).toBeUndefined();
  expect(read).toEqual(['store']);
});
