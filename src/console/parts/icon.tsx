/** The icons of the console: outlines, most of them from Lucide (ISC licence). */
const PATHS = {
  activity: 'M22 12h-4l-3 8L9 4l-3 8H2',
  bell: 'M10.3 21a2 2 0 0 0 3.4 0M3.3 15.3A1 1 0 0 0 4 17h16a1 1 0 0 0 .7-1.7C19.4 14 18 12.5 18 8A6 6 0 0 0 6 8c0 4.5-1.4 6-2.7 7.3',
  box: 'm12 2 9 5v10l-9 5-9-5V7ZM3 7l9 5 9-5M12 12v10',
  check: 'M20 6 9 17l-5-5',
  clock: 'M12 6v6l4 2M12 2a10 10 0 1 0 0 20 10 10 0 1 0 0-20Z',
  close: 'M18 6 6 18M6 6l12 12',
  copy: 'M4 16V4h12M9 9h12v12H9Z',
  database:
    'M21 5c0 1.7-4 3-9 3S3 6.7 3 5s4-3 9-3 9 1.3 9 3ZM3 5v14c0 1.7 4 3 9 3s9-1.3 9-3V5M3 12c0 1.7 4 3 9 3s9-1.3 9-3',
  download: 'M12 15V3M21 15v4a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2v-4M7 10l5 5 5-5',
  fit: 'M3 8V3h5M16 3h5v5M21 16v5h-5M8 21H3v-5',
  key: 'M15.5 7.5l2.3 2.3a1 1 0 0 0 1.4 0l2.1-2.1a1 1 0 0 0 0-1.4L19 4M21 2l-9.6 9.6M13 15.5a5.5 5.5 0 1 1-11 0 5.5 5.5 0 0 1 11 0Z',
  laptop: 'M18 5a2 2 0 0 1 2 2v8.5l2 3.5H2l2-3.5V7a2 2 0 0 1 2-2ZM4 15.5h16',
  left: 'm15 18-6-6 6-6',
  list: 'M3 6h.01M3 12h.01M3 18h.01M8 6h13M8 12h13M8 18h13',
  map: 'M20 10c0 5-5.5 10.2-7.4 11.8a1 1 0 0 1-1.2 0C9.5 20.2 4 15 4 10a8 8 0 0 1 16 0ZM15 10a3 3 0 1 1-6 0 3 3 0 0 1 6 0Z',
  minus: 'M5 12h14',
  pause: 'M6 4h3v16H6ZM15 4h3v16h-3Z',
  play: 'M6 4.5v15L19 12Z',
  plus: 'M5 12h14M12 5v14',
  polygon: 'M12 3l9 7-3.5 10.5h-11L3 10Z',
  right: 'm9 18 6-6-6-6',
  search: 'm21 21-4.3-4.3M19 11a8 8 0 1 1-16 0 8 8 0 0 1 16 0Z',
  settings: 'M4 6h10M18 6h2M4 12h2M10 12h10M4 18h8M16 18h4M14 4v4M6 10v4M12 16v4',
  shield:
    'M20 13c0 5-3.5 7.5-7.66 8.95a1 1 0 0 1-.67-.01C7.5 20.5 4 18 4 13V6a1 1 0 0 1 1-1c2 0 4.5-1.2 6.24-2.72a1.17 1.17 0 0 1 1.52 0C14.51 3.81 17 5 19 5a1 1 0 0 1 1 1Z',
  terminal: 'M12 19h8M4 17l6-6-6-6',
  trash: 'M3 6h18M19 6v14a2 2 0 0 1-2 2H7a2 2 0 0 1-2-2V6M8 6V4a2 2 0 0 1 2-2h4a2 2 0 0 1 2 2v2',
  user: 'M19 21v-2a4 4 0 0 0-4-4H9a4 4 0 0 0-4 4v2M16 7a4 4 0 1 1-8 0 4 4 0 0 1 8 0Z',
  warning: 'm21.7 18-8-14a2 2 0 0 0-3.5 0l-8 14A2 2 0 0 0 4 21h16a2 2 0 0 0 1.7-3ZM12 9v4M12 17h.01',
  zap: 'M13 2 4 14h7l-1 8 10-12h-8z',
} as const;

export type IconName = keyof typeof PATHS;

/** Decoration: what it means is said in text beside it, or in the label of its button. */
export const Icon = ({ name, size = 18 }: { name: IconName; size?: number }) => (
  <Outline path={PATHS[name]} size={size} />
);

/** An icon of a single page. */
export const Outline = ({ path, size }: { path: string; size: number }) => (
  <svg class="icon" width={size} height={size} viewBox="0 0 24 24" aria-hidden="true">
    <path d={path} />
  </svg>
);
