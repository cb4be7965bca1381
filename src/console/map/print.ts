/** Maps on paper: browsers print what a graphics card has drawn as nothing, but a picture of it. */
import type { Map as GlMap } from 'maplibre-gl';

/** Puts a picture of all that is drawn in the place of the map for as long as the page is printed. */
export function printPicture(map: GlMap, container: HTMLElement): void {
  let picture: HTMLCanvasElement | null = null;
  const remove = (): void => {
    picture?.remove();
    picture = null;
  };
  const add = (): void => {
    remove();
    // What is drawn can be read until the task ends.
    map.redraw();
    picture = toPicture(container);
    container.append(picture);
  };
  addEventListener('beforeprint', add);
  addEventListener('afterprint', remove);
  map.on('remove', () => {
    removeEventListener('beforeprint', add);
    removeEventListener('afterprint', remove);
  });
}

function toPicture(container: HTMLElement): HTMLCanvasElement {
  const drawn = [...container.querySelectorAll('canvas')];
  const picture = document.createElement('canvas');
  picture.className = 'map-picture';
  picture.width = Math.max(...drawn.map(({ width }) => width));
  picture.height = Math.max(...drawn.map(({ height }) => height));
  const pen = picture.getContext('2d');
  if (pen !== null) {
    // The water of a map is what is behind it.
    pen.fillStyle = getComputedStyle(container.parentElement ?? container).backgroundColor;
    pen.fillRect(0, 0, picture.width, picture.height);
  }
  for (const canvas of drawn) pen?.drawImage(canvas, 0, 0, picture.width, picture.height);
  return picture;
}
