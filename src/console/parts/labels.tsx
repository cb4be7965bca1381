/** The labels of an object, in their colors. */
import { colorOfLabel } from '../state/labels.js';

export function Labels({ labels }: { labels: readonly string[] }) {
  if (labels.length === 0) return null;
  return (
    <span class="labels">
      {labels.map((label) => (
        <span key={label} class="tag label">
          <Swatch color={colorOfLabel(label)} />
          {label}
        </span>
      ))}
    </span>
  );
}

export const Swatch = ({ color }: { color: string | null }) =>
  color === null ? null : <span class="swatch" style={{ background: color }} />;
