/** Colors as people write them in entities. */

/** What every part of the page and of its map understands; null for anything that is no plain color. */
export function toColor(value: unknown): string | null {
  if (typeof value !== 'string' || !CSS.supports('color', value)) return null;
  const context = document.createElement('canvas').getContext('2d');
  if (context === null) return null;
  // A canvas does not take `inherit`, and says all others in few forms.
  context.fillStyle = NONE;
  context.fillStyle = value;
  const color = String(context.fillStyle);
  return PLAIN.test(color) && (color !== NONE || value.trim().toLowerCase() === NONE) ? color : null;
}

const NONE = '#010203';
const PLAIN = /^(#|rgba?\()/;
