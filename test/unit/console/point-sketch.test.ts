/** Objects on the sketch of the map look as on the map itself. */
import { expect, test } from '@jest/globals';
import { drawPoint, type Pen, POINT_COLORS } from '../../../src/console/map/point-sketch.js';

/** Records what is drawn. */
function createRecorder() {
  const calls: [string, ...number[]][] = [];
  const colors: string[] = [];
  const record =
    (name: string) =>
    (...values: number[]): void => {
      calls.push([name, ...values.map((value) => Math.round(value * 100) / 100)]);
    };
  const context = {
    set fillStyle(color: string) {
      colors.push(color);
    },
    ...{ beginPath: () => undefined, fill: () => undefined, arc: record('arc'), lineTo: record('lineTo') },
  };
  return { calls, colors, context: context as Pen };
}

test('draws a disc with a ring where an object has no direction', () => {
  const { calls, colors, context } = createRecorder();
  drawPoint(context, [100, 50], Float32Array.of(-10, 1, 0), POINT_COLORS.light);
  expect(colors).toEqual(['rgb(255 255 255)', 'rgb(13 153 97)']);
  expect(calls).toEqual([
    ['arc', 100, 50, 6.24, 0, 6.28],
    ['arc', 100, 50, 4.68, 0, 6.28],
  ]);
});

test('draws a drop that points where an object moves, larger if it is selected', () => {
  const { calls, colors, context } = createRecorder();
  drawPoint(context, [100, 50], Float32Array.of(Math.PI / 2, 0, 1), POINT_COLORS.dark);
  expect(colors).toEqual(['rgb(158 184 255)', 'rgb(102 117 135)']);
  // To the east.
  expect(calls.filter(([name]) => name === 'lineTo')[0]).toEqual(['lineTo', 117.1, 50]);
});
