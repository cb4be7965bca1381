/** The texts of where objects are in German. */
import type { WhereCatalogue } from './english.js';

export const GERMAN_WHERE: WhereCatalogue = {
  'where.direction.0': 'nördlich',
  'where.direction.1': 'nordöstlich',
  'where.direction.2': 'östlich',
  'where.direction.3': 'südöstlich',
  'where.direction.4': 'südlich',
  'where.direction.5': 'südwestlich',
  'where.direction.6': 'westlich',
  'where.direction.7': 'nordwestlich',
  'where.from': '{distance} {direction} von {town}',
  'where.geofence': 'In {name}',
  'where.geofenceAtLeast': 'In {name} seit {moment} oder länger',
  'where.geofenceSince': 'In {name} seit {moment}',
  'where.in': 'in {town}',
  'where.last': 'zuletzt {place}',
  'where.more.one': 'und in {count} weiteren Geofence',
  'where.more.other': 'und in {count} weiteren Geofences',
  'where.near': 'bei {town}',
  'where.unnamed': 'einem Geofence ohne Namen',
};
