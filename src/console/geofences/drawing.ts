/** The geofence that is being drawn or changed: what its form says and what its map shows. */
import { type Signal, useSignal } from '@preact/signals';
import type { DrawMode } from '../map/draw.js';
import type { Shape } from '../map/geofence-shapes.js';
import type { Geofence } from '../state/geofences.js';

export interface Drawing {
  readonly edited: Signal<Geofence | 'new' | null>;
  /** Which the map shows since its name was clicked. */
  readonly shown: Signal<Geofence | null>;
  /** undefined until it is drawn. */
  readonly shape: Signal<Shape | undefined>;
  /** What is drawn with the next clicks on the map. */
  readonly mode: Signal<DrawMode | null>;
  /** Whether the shape differs from what is stored. */
  readonly isChanged: Signal<boolean>;
  readonly showOnMap: (geofence: Geofence) => void;
  readonly edit: (geofence: Geofence | 'new') => void;
  readonly begin: (mode: DrawMode) => void;
  readonly setShape: (shape: Shape) => void;
  readonly stop: () => void;
}

export function useDrawing(): Drawing {
  const edited = useSignal<Geofence | 'new' | null>(null);
  const shown = useSignal<Geofence | null>(null);
  const shape = useSignal<Shape | undefined>(undefined);
  const mode = useSignal<DrawMode | null>(null);
  const isChanged = useSignal(false);
  const set = (next: Geofence | 'new' | null, drawn: Shape | undefined): void => {
    edited.value = next;
    shape.value = drawn;
    mode.value = next === 'new' ? 'polygon' : null;
    isChanged.value = false;
  };
  return {
    edited,
    shown,
    shape,
    mode,
    isChanged,
    showOnMap(geofence) {
      // Again, if the user has moved the map since.
      shown.value = { ...geofence };
    },
    edit: (geofence) => set(geofence, geofence === 'new' ? undefined : shapeOf(geofence)),
    begin(wanted) {
      shape.value = undefined;
      mode.value = wanted;
    },
    setShape(drawn) {
      shape.value = drawn;
      mode.value = null;
      isChanged.value = true;
    },
    stop: () => set(null, undefined),
  };
}

function shapeOf({ geometry, radius }: Geofence): Shape | undefined {
  if (geometry === undefined || geometry === null) return undefined;
  return typeof radius === 'number' ? { geometry, radius } : { geometry };
}
