/** Draws the objects in the map's own picture. */
import type { CustomLayerInterface } from 'maplibre-gl';
import type { ObjectPoints, View } from './object-points.js';
import { FRAGMENT, VERTEX } from './point-shapes.js';

type Rgb = [number, number, number];

export const POINT_COLORS: Readonly<Record<'light' | 'dark', Readonly<Record<string, Rgb>>>> = {
  light: { online: [0.05, 0.6, 0.38], offline: [0.56, 0.6, 0.66], ring: [1, 1, 1], selected: [0.14, 0.29, 0.77] },
  dark: { online: [0.24, 0.83, 0.56], offline: [0.4, 0.46, 0.53], ring: [0.06, 0.08, 0.11], selected: [0.62, 0.72, 1] },
};
const SIZE_PX = 24;

interface LayerOptions {
  readonly points: ObjectPoints;
  readonly view: () => View;
  readonly colors: () => Readonly<Record<string, Rgb>>;
}

export function createPointLayer({ points, view, colors }: LayerOptions): CustomLayerInterface {
  let program: WebGLProgram;
  let buffers: Record<'place' | 'look', WebGLBuffer>;
  let array: WebGLVertexArrayObject;
  const uniforms = new Map<string, WebGLUniformLocation | null>();
  return {
    ...{ id: 'objects', type: 'custom', renderingMode: '2d' },
    onAdd(_map, gl) {
      program = createProgram(gl);
      array = gl.createVertexArray();
      gl.bindVertexArray(array);
      buffers = { place: attach(gl, program, 'a_place', 2), look: attach(gl, program, 'a_look', 3) };
      gl.bindVertexArray(null);
      for (const name of ['u_size', 'u_online', 'u_offline', 'u_ring', 'u_selected'])
        uniforms.set(name, gl.getUniformLocation(program, name));
    },
    render(gl) {
      const place = points.project(view());
      gl.useProgram(program);
      gl.bindVertexArray(array);
      fill(gl, buffers.place, place.subarray(0, points.count * 2));
      fill(gl, buffers.look, points.look.subarray(0, points.count * 3));
      gl.uniform1f(uniforms.get('u_size') ?? null, SIZE_PX * devicePixelRatio);
      for (const [name, rgb] of Object.entries(colors())) gl.uniform3fv(uniforms.get(`u_${name}`) ?? null, rgb);
      gl.enable(gl.BLEND);
      gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
      gl.disable(gl.DEPTH_TEST);
      gl.disable(gl.STENCIL_TEST);
      gl.drawArrays(gl.POINTS, 0, points.count);
      gl.bindVertexArray(null);
    },
  };
}

function fill(gl: WebGL2RenderingContext, buffer: WebGLBuffer, values: Float32Array): void {
  gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
  gl.bufferData(gl.ARRAY_BUFFER, values, gl.STREAM_DRAW);
}

function attach(gl: WebGL2RenderingContext, program: WebGLProgram, name: string, size: number): WebGLBuffer {
  const buffer = gl.createBuffer();
  const location = gl.getAttribLocation(program, name);
  gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
  gl.enableVertexAttribArray(location);
  gl.vertexAttribPointer(location, size, gl.FLOAT, false, 0, 0);
  return buffer;
}

function createProgram(gl: WebGL2RenderingContext): WebGLProgram {
  const program = gl.createProgram();
  for (const [type, source] of [
    [gl.VERTEX_SHADER, VERTEX],
    [gl.FRAGMENT_SHADER, FRAGMENT],
  ] as const) {
    const shader = gl.createShader(type);
    if (shader === null) throw new Error('no shader');
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program) ?? 'no program');
  return program;
}
