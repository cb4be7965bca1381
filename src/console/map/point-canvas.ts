/** Draws the objects above the map. */
import type { ObjectPoints, View } from './object-points.js';
import { FRAGMENT, LOOK_SIZE, POINT_PX, type PointColors, VERTEX } from './point-shapes.js';

export interface PointCanvasOptions {
  readonly points: ObjectPoints;
  readonly view: () => View;
  readonly colors: () => PointColors;
  /** Called whenever they are drawn. */
  readonly onDraw: (view: View) => void;
}

export interface PointCanvas {
  draw(): void;
  /** In the next frame. */
  drawSoon(): void;
  remove(): void;
}

const UNIFORMS = ['size', 'online', 'offline', 'ring', 'selected', 'info', 'warning', 'critical'];

/** A canvas of their own above the map: objects that move cost the drawing of objects, not of countries and names, too. */
export function createPointCanvas(container: HTMLElement, options: PointCanvasOptions): PointCanvas {
  const canvas = document.createElement('canvas');
  canvas.className = 'map-points';
  const gl = canvas.getContext('webgl2', { antialias: false, depth: false, stencil: false });
  if (gl === null) throw new Error('no WebGL');
  container.append(canvas);
  let drawing = createDrawing(gl, options);
  // Browsers take the graphics card away, for example while a computer sleeps.
  canvas.addEventListener('webglcontextlost', (event) => event.preventDefault());
  canvas.addEventListener('webglcontextrestored', () => {
    drawing = createDrawing(gl, options);
    drawing();
  });
  let frame = 0;
  return {
    draw: () => drawing(),
    drawSoon() {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(() => drawing());
    },
    remove() {
      cancelAnimationFrame(frame);
      canvas.remove();
      gl.getExtension('WEBGL_lose_context')?.loseContext();
    },
  };
}

/** What draws all objects as they are now. */
function createDrawing(gl: WebGL2RenderingContext, { points, view, colors, onDraw }: PointCanvasOptions): () => void {
  const { canvas } = gl;
  const program = createProgram(gl);
  gl.useProgram(program);
  gl.enable(gl.BLEND);
  gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  const place = attach(gl, program, 'a_place', 2);
  const look = attach(gl, program, 'a_look', LOOK_SIZE);
  gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, gl.createBuffer());
  const uniforms = new Map(UNIFORMS.map((name) => [name, gl.getUniformLocation(program, `u_${name}`)] as const));
  return () => {
    if (gl.isContextLost()) return;
    const shown = view();
    const [width, height] = [shown.widthPx, shown.heightPx].map((px) => Math.round(px * devicePixelRatio));
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clear(gl.COLOR_BUFFER_BIT);
    fill(gl, place, points.project(shown).subarray(0, points.count * 2));
    fill(gl, look, points.look.subarray(0, points.count * LOOK_SIZE));
    gl.uniform1f(uniforms.get('size') ?? null, POINT_PX * devicePixelRatio);
    for (const [name, rgb] of Object.entries(colors())) gl.uniform3fv(uniforms.get(name) ?? null, rgb);
    gl.drawArrays(gl.POINTS, 0, points.count);
    const above = points.front();
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, above, gl.STREAM_DRAW);
    gl.drawElements(gl.POINTS, above.length, gl.UNSIGNED_INT, 0);
    onDraw(shown);
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
