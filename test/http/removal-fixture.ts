/** Objects with packets to remove, and what is left of them. */
import { ObjectId } from 'mongodb';
import type { TestService } from '../support/fixture.js';

/** The time of the first packet of each object. */
export const START = Date.UTC(2026, 0, 1);

export const pathOf = (id: string, query: string): string => `objects/${id}/packets?${query}`;

/** What a test of removals does with this service. */
export const removalsOf = (service: TestService) => ({
  /** An object with so many packets, one a second, each with its number. */
  async createObject(packets: number): Promise<string> {
    const id = `truck-${new ObjectId()}`;
    const { _id } = (await service.admin('POST', 'objects', { id, name: 'Truck' })).body;
    const some = Array.from({ length: packets }, (_, nth) => ({ time: START + nth * 1_000, nth }));
    await service.admin('POST', `objects/${_id}/packets`, some);
    return _id;
  },
  /** The numbers of the packets that are left. */
  numbersOf: async (id: string): Promise<number[]> =>
    (await service.admin('GET', `objects/${id}/packets`)).body.map(({ nth }: { nth: number }) => nth),
  /** The collection of the removals that are not done. */
  removals: () => service.client.db().collection('removals'),
});
