/** Speed, course and height in a packet, in the field names of many devices: of the packet, or else of its first member that has them. */
import { CONTAINER_NAMES, type Fields, findNumber, isFields } from './position-fields.js';

export const HEIGHT_NAMES = ['height', 'alt', 'altitude', 'elevation', 'ele'];
export const SPEED_NAMES = ['speed'];
export const COURSE_NAMES = ['angle', 'course', 'heading', 'direction'];

/** ITU-R M.1371: course 360 and heading 511 mean "not available". */
export const isCourse = (degrees: number): boolean => degrees !== 360 && degrees !== 511;

/** km/h; NaN if the packet has none. */
export const findSpeed = (packet: Fields): number => find(packet, SPEED_NAMES);

/** Degrees; NaN if the packet has none. */
export const findCourse = (packet: Fields): number => find(packet, COURSE_NAMES, isCourse);

function find(fields: Fields, names: readonly string[], counts?: (value: number) => boolean): number {
  let found = findNumber(fields, names, counts);
  for (let index = 0; Number.isNaN(found) && index < CONTAINER_NAMES.length; index++) {
    const inner = fields[CONTAINER_NAMES[index] as string];
    if (isFields(inner)) found = find(inner, names, counts);
  }
  return found;
}
