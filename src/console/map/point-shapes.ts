/**
 * The shaders that draw an object: a drop that points where it moves, a disc, a hatched disc or a ring, and a plate beneath it whose shape
 * and color are those of its worst alarm. What is the same for all pixels of an object is computed once: without a graphics card, the
 * processor runs the second shader for millions of pixels a second.
 */
import type { Severity } from '../state/alarms.js';

type Rgb = readonly [number, number, number];
export type PointColors = Readonly<Record<'online' | 'offline' | 'ring' | 'selected' | Severity, Rgb>>;

/** `unknown`: without a connection, nobody knows whether it is online. */
export type MarkerKind = 'offline' | 'unknown' | 'silent' | 'standing' | 'moving';
/** By their numbers in the shaders. */
export const MARKER_KINDS: readonly MarkerKind[] = ['offline', 'unknown', 'silent', 'standing', 'moving'];
export const MARKER_ALARMS: readonly (Severity | null)[] = [null, 'info', 'warning', 'critical'];

/** Of `--good-dot` and the like in styles/tokens.css, as strong as they are on a map. */
export const POINT_COLORS: Readonly<Record<'light' | 'dark', PointColors>> = {
  light: {
    online: [0.05, 0.6, 0.38],
    offline: [0.46, 0.5, 0.56],
    ring: [1, 1, 1],
    selected: [0.14, 0.29, 0.77],
    critical: [0.79, 0.15, 0.11],
    warning: [0.76, 0.45, 0],
    info: [0.18, 0.4, 0.82],
  },
  dark: {
    online: [0.24, 0.83, 0.56],
    offline: [0.5, 0.56, 0.63],
    ring: [0.06, 0.08, 0.11],
    selected: [0.62, 0.72, 1],
    critical: [1, 0.48, 0.43],
    warning: [0.94, 0.69, 0.24],
    info: [0.56, 0.67, 1],
  },
};
/** The square in which an object without an alarm is drawn. */
export const POINT_PX = 24;
/** In place of a direction. */
export const NO_DIRECTION = -10;
/** The numbers of one object in `a_look`. */
export const LOOK_SIZE = 4;

// a_look: the direction in radians (below -9 for none), the kind, the worst alarm, whether it is selected.
// v_turn: the sine and the cosine of the direction; both 0 without one.
// v_half, v_pixel: half of the drawn square, and a pixel, both in halves of a square without a plate.
export const VERTEX = `#version 300 es
in vec2 a_place;
in vec4 a_look;
uniform float u_size;
uniform vec3 u_online;
uniform vec3 u_offline;
uniform vec3 u_ring;
uniform vec3 u_selected;
uniform vec3 u_info;
uniform vec3 u_warning;
uniform vec3 u_critical;
flat out vec2 v_turn;
flat out vec3 v_fill;
flat out vec3 v_ring;
flat out vec3 v_plate;
flat out float v_kind;
flat out float v_alarm;
flat out float v_half;
flat out float v_pixel;
void main() {
  bool is_disc = a_look.x < -9.0;
  float size = u_size * (a_look.w > 0.5 ? 1.5 : 1.0);
  v_kind = a_look.y;
  v_alarm = a_look.z;
  v_turn = is_disc ? vec2(0.0) : vec2(sin(a_look.x), cos(a_look.x));
  v_fill = a_look.y > 2.5 ? u_online : u_offline;
  v_ring = mix(u_ring, u_selected, a_look.w);
  v_plate = a_look.z > 2.5 ? u_critical : a_look.z > 1.5 ? u_warning : u_info;
  v_pixel = 2.0 / size;
  v_half = a_look.z > 0.5 ? 1.4 : is_disc ? 0.52 + v_pixel : 1.0;
  gl_Position = vec4(a_place, 0.0, 1.0);
  gl_PointSize = size * v_half;
}`;

// plate: an octagon, a triangle that stands on its side, or a disc.
export const FRAGMENT = `#version 300 es
precision mediump float;
uniform highp vec3 u_ring;
flat in vec2 v_turn;
flat in vec3 v_fill;
flat in vec3 v_ring;
flat in vec3 v_plate;
flat in float v_kind;
flat in float v_alarm;
flat in float v_half;
flat in float v_pixel;
out vec4 color;
const float r = 0.52;
const float phi = r / 0.95;
const float slope = 0.83689;
const float border = 0.13;
float cover(float d) { return clamp(0.5 - d / v_pixel, 0.0, 1.0); }
float plate(vec2 p) {
  vec2 a = abs(p);
  if (v_alarm > 2.5) return max(max(a.x, a.y), (a.x + a.y) * 0.7071) - 1.0;
  if (v_alarm > 1.5) return max(-p.y - 0.68, a.x * 0.866 + p.y * 0.5 - 0.68);
  return length(p) - 0.95;
}
void main() {
  vec2 p = (gl_PointCoord * 2.0 - 1.0) * vec2(v_half, -v_half);
  float y = p.x * v_turn.x + p.y * v_turn.y;
  float away = length(p);
  float d = away - r;
  if (y > r * phi) d = abs(p.x * v_turn.y - p.y * v_turn.x) * slope + y * phi - r;
  float under = v_alarm > 0.5 ? plate(p) : 9.0;
  if (min(d, under) > v_pixel) discard;
  vec3 fill = v_fill;
  if (v_kind < 0.5) fill = mix(v_fill, u_ring, cover(away - 0.2));
  else if (v_kind > 1.5 && v_kind < 2.5) fill = mix(u_ring, v_fill, cover(abs(fract((p.x + p.y) * 2.6) - 0.5) * 0.27 - 0.075));
  float outer = cover(d);
  vec4 marker = vec4(mix(v_ring, fill, cover(d + border)) * outer, outer);
  if (under > 8.0) {
    color = marker;
    return;
  }
  float below = cover(under);
  color = marker + vec4(mix(v_ring, v_plate, cover(under + border)) * below, below) * (1.0 - outer);
}`;
