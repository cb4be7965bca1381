/** The shaders that draw an object: a disc, or a drop that points where it moves, with a ring around it. */
export const VERTEX = `#version 300 es
in vec2 a_place;
in vec3 a_look;
uniform float u_size;
out vec3 v_look;
void main() {
  v_look = a_look;
  gl_Position = vec4(a_place, 0.0, 1.0);
  gl_PointSize = u_size * (a_look.z > 0.5 ? 1.5 : 1.0);
}`;

// a_look: the direction in radians (below -9 for none), the kind (0 offline, 1 online), whether it is selected.
export const FRAGMENT = `#version 300 es
precision mediump float;
in vec3 v_look;
uniform vec3 u_online;
uniform vec3 u_offline;
uniform vec3 u_ring;
uniform vec3 u_selected;
out vec4 color;
void main() {
  vec2 p = gl_PointCoord * 2.0 - 1.0;
  p.y = -p.y;
  float r = 0.52;
  float d;
  if (v_look.x < -9.0) {
    d = length(p) - r;
  } else {
    float s = sin(v_look.x);
    float c = cos(v_look.x);
    vec2 q = vec2(p.x * c - p.y * s, p.x * s + p.y * c);
    float phi = r / 0.95;
    float tangent = abs(q.x) * sqrt(1.0 - phi * phi) + q.y * phi - r;
    d = q.y > r * phi ? tangent : length(q) - r;
  }
  float soft = fwidth(d) + 0.01;
  float inner = 1.0 - smoothstep(-soft, soft, d + 0.13);
  float outer = 1.0 - smoothstep(-soft, soft, d);
  vec3 fill = mix(u_offline, u_online, v_look.y);
  vec3 ring = mix(u_ring, u_selected, v_look.z);
  color = vec4(mix(ring, fill, inner) * outer, outer);
}`;
