/** A copy of an object that applies only received events equals the stored object, after random changes by several writers. */
import { expect, test } from '@jest/globals';
import { ADMIN, type Listener, useService } from '../support/fixture.js';
import { fc, runsOf } from '../support/runs.js';

const service = useService();

type Fields = Record<string, unknown>;

const scalar = fc.oneof(fc.string(), fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean());
const tree = fc.letrec((tie) => ({
  node: fc.oneof(
    { maxDepth: 3 },
    scalar,
    fc.constant(null),
    fc.array(tie('node'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom('a', 'b', 'c'), tie('node'), { maxKeys: 3 }),
  ),
})).node;
const isSound = (value: unknown): boolean =>
  JSON.stringify(value).isWellFormed() && !/\\u0000/.test(JSON.stringify(value));
const free = tree.filter(isSound);
const patch = fc.record(
  {
    status: fc.string().filter(isSound),
    active: fc.boolean(),
    description: fc.string().filter(isSound),
    config: fc.dictionary(fc.constantFrom('a', 'b', 'c'), free, { maxKeys: 3 }),
    depth: free,
    list: fc.array(free, { maxLength: 4 }),
    nested: fc.dictionary(fc.constantFrom('a', 'b', 'c'), free, { maxKeys: 3 }),
  },
  { requiredKeys: [] },
);

/** Applies every update of the object, and compares its `before` with the copy. */
function follow(mirror: Fields, id: string, listener: Listener): void {
  for (const { name, payload } of listener.take()) {
    if (name !== 'object-update' || payload.id !== id) continue;
    const { before, after } = payload as { before: Fields; after: Fields };
    for (const field of new Set([...Object.keys(before), ...Object.keys(after)])) {
      expect({ [field]: mirror[field] }).toEqual({ [field]: before[field] });
      expect(before[field]).not.toEqual(after[field]);
    }
    for (const field of Object.keys(before)) delete mirror[field];
    Object.assign(mirror, after);
  }
}

const visible = ({ _at, success, state, ...fields }: Fields): Fields => fields;

test('sends updates that turn a copy of an object into the stored object', async () => {
  const listener = await service.listen(await service.tokenOf(ADMIN.login, ADMIN.password));
  let round = 0;
  let refused = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(patch, { minLength: 1, maxLength: 8 }), fc.boolean(), async (patches, atOnce) => {
      const id = `mirrored-${++round}`;
      const { body } = await service.admin('POST', 'objects', { id, name: id });
      const mirror = visible(body);
      const send = async (fields: object): Promise<void> => {
        const { status } = await service.admin('PATCH', `objects/${id}`, fields);
        expect([200, 400]).toContain(status);
        if (status === 400) refused++;
      };
      if (atOnce) await Promise.all(patches.map(send));
      else for (const fields of patches) await send(fields);
      await service.settled();
      follow(mirror, body._id, listener);
      const stored = await service.admin('GET', `objects/${id}`);
      expect(mirror).toEqual(visible(stored.body));
    }),
    { numRuns: runsOf(60) },
  );
  // The service accepts nearly all of these changes.
  expect(refused).toBeLessThan(round);
});
