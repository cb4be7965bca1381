/** Draws shapes on a map with pointer or finger: areas, circles and lines, whose corners can be moved afterwards. */
import type { Map as GlMap } from 'maplibre-gl';
import {
  type HexColor,
  TerraDraw,
  TerraDrawCircleMode,
  TerraDrawLineStringMode,
  TerraDrawPolygonMode,
  TerraDrawSelectMode,
} from 'terra-draw';
import { TerraDrawMapLibreGLAdapter } from 'terra-draw-maplibre-gl-adapter';

export type DrawMode = 'polygon' | 'circle' | 'linestring';

const COLORS: Readonly<Record<'light' | 'dark', HexColor>> = { light: '#2449c4', dark: '#8fabff' };
/** Corners can be moved and removed, and new ones added between them. */
const CORNERS = { feature: { draggable: true, coordinates: { draggable: true, midpoints: true, deletable: true } } };
const ROUND = { feature: { draggable: true, coordinates: { resizable: 'center-fixed' as const } } };

export function createDraw(map: GlMap, isDark: boolean): TerraDraw {
  const color = COLORS[isDark ? 'dark' : 'light'];
  const area = { fillColor: color, fillOpacity: 0.2, outlineColor: color, outlineWidth: 2.5 };
  const draw = new TerraDraw({
    adapter: new TerraDrawMapLibreGLAdapter({ map, coordinatePrecision: 9 }),
    idStrategy: {
      isValidId: (id) => typeof id === 'string',
      getId: () => crypto.getRandomValues(new Uint32Array(2)).join('-'),
    },
    modes: [
      new TerraDrawPolygonMode({ styles: area }),
      new TerraDrawCircleMode({ styles: area, projection: 'globe' }),
      new TerraDrawLineStringMode({ styles: { lineStringColor: color, lineStringWidth: 2.5 } }),
      new TerraDrawSelectMode({
        flags: { polygon: CORNERS, linestring: CORNERS, circle: ROUND },
        // The shape stays selected for as long as its form is open.
        allowManualDeselection: false,
        keyEvents: null,
        styles: {
          selectedPolygonColor: color,
          selectedPolygonFillOpacity: 0.2,
          selectedPolygonOutlineColor: color,
          selectedLineStringColor: color,
          selectionPointColor: '#ffffff',
          selectionPointOutlineColor: color,
          selectionPointWidth: 6,
          selectionPointOutlineWidth: 2.5,
          midPointColor: color,
          midPointWidth: 4,
        },
      }),
    ],
  });
  draw.start();
  return draw;
}
