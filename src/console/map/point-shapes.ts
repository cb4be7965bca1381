/**
 * The shaders that draw an object: a disc, or a drop that points where it moves, with a ring around it. What is the same for all pixels of
 * an object is computed once: without a graphics card, the processor runs the second shader for millions of pixels a second.
 */
type Rgb = readonly [number, number, number];
export type PointColors = Readonly<Record<'online' | 'offline' | 'ring' | 'selected', Rgb>>;

export const POINT_COLORS: Readonly<Record<'light' | 'dark', PointColors>> = {
  light: { online: [0.05, 0.6, 0.38], offline: [0.56, 0.6, 0.66], ring: [1, 1, 1], selected: [0.14, 0.29, 0.77] },
  dark: { online: [0.24, 0.83, 0.56], offline: [0.4, 0.46, 0.53], ring: [0.06, 0.08, 0.11], selected: [0.62, 0.72, 1] },
};
/** The square in which an object is drawn. */
export const POINT_PX = 24;
/** In place of a direction. */
export const NO_DIRECTION = -10;

// a_look: the direction in radians (below -9 for none), the kind (0 offline, 1 online), whether it is selected.
export const VERTEX = `#version 300 es
in vec2 a_place;
in vec3 a_look;
uniform float u_size;
uniform vec3 u_online;
uniform vec3 u_offline;
uniform vec3 u_ring;
uniform vec3 u_selected;
// The sine and the cosine of the direction; both 0 without one.
flat out vec2 v_turn;
flat out vec3 v_fill;
flat out vec3 v_ring;
// Half of the drawn square, and a pixel, both in halves of the whole one.
flat out float v_half;
flat out float v_pixel;
void main() {
  bool is_disc = a_look.x < -9.0;
  float size = u_size * (a_look.z > 0.5 ? 1.5 : 1.0);
  v_turn = is_disc ? vec2(0.0) : vec2(sin(a_look.x), cos(a_look.x));
  v_fill = mix(u_offline, u_online, a_look.y);
  v_ring = mix(u_ring, u_selected, a_look.z);
  v_pixel = 2.0 / size;
  v_half = is_disc ? 0.52 + v_pixel : 1.0;
  gl_Position = vec4(a_place, 0.0, 1.0);
  gl_PointSize = size * v_half;
}`;

export const FRAGMENT = `#version 300 es
precision mediump float;
flat in vec2 v_turn;
flat in vec3 v_fill;
flat in vec3 v_ring;
flat in float v_half;
flat in float v_pixel;
out vec4 color;
const float r = 0.52;
const float phi = r / 0.95;
const float slope = 0.83689;
void main() {
  vec2 p = (gl_PointCoord * 2.0 - 1.0) * vec2(v_half, -v_half);
  float y = p.x * v_turn.x + p.y * v_turn.y;
  float d = length(p) - r;
  if (y > r * phi) d = abs(p.x * v_turn.y - p.y * v_turn.x) * slope + y * phi - r;
  if (d > v_pixel) discard;
  float inner = clamp(0.5 - (d + 0.13) / v_pixel, 0.0, 1.0);
  float outer = clamp(0.5 - d / v_pixel, 0.0, 1.0);
  color = vec4(mix(v_ring, v_fill, inner) * outer, outer);
}`;
