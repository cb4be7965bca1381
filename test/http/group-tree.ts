/** The tree of groups as it is stored, and what of it is not true. */
import type { Document, ObjectId } from 'mongodb';
import type { TestService } from '../support/fixture.js';

export interface Owned {
  readonly collection: string;
  readonly _id: string;
  readonly group: string;
  readonly branch: readonly string[];
}

/** Every entity that belongs to a group, by collection and `_id`; `untrue`: those whose branch is not their group's chain. */
export async function treeOf({ client }: Pick<TestService, 'client'>): Promise<{ entities: Owned[]; untrue: Owned[] }> {
  const db = client.db();
  const collections = (await db.listCollections({}, { nameOnly: true }).toArray()).map(({ name }) => name).sort();
  const entities: Owned[] = [];
  const parents = new Map<string, string | null>();
  for (const collection of collections) {
    const found = await db
      .collection(collection)
      .find({ group: { $exists: true } }, { sort: { _id: 1 } })
      .toArray();
    entities.push(...found.map((document) => toOwned(collection, document)));
    if (collection !== 'groups') continue;
    for (const { _id, parent } of found) parents.set(String(_id), parent === null ? null : String(parent));
  }
  const untrue = entities.filter(({ group, branch }) => branch.join() !== chainOf(parents, group).join());
  return { entities, untrue };
}

function toOwned(collection: string, { _id, group, branch }: Document): Owned {
  return { collection, _id: String(_id), group: String(group), branch: (branch as ObjectId[]).map(String) };
}

/** The groups from the root down to this one, by their parents alone; a ring ends where it closes. */
function chainOf(parents: ReadonlyMap<string, string | null>, group: string): string[] {
  const chain: string[] = [];
  for (let at: string | null = group; at !== null && !chain.includes(at); at = parents.get(at) ?? null) {
    chain.unshift(at);
  }
  return chain;
}
