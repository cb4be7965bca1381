/** Light or dark: the system's choice, unless the user makes one. */
import { signal } from '@preact/signals';

export type Theme = 'auto' | 'light' | 'dark';
const STORED = 'vigil.theme';
const system = matchMedia('(prefers-color-scheme: dark)');

export const theme = signal<Theme>('auto');
export const isDark = signal(system.matches);

function show(): void {
  isDark.value = theme.value === 'auto' ? system.matches : theme.value === 'dark';
  document.documentElement.dataset.theme = isDark.value ? 'dark' : 'light';
}

export function loadTheme(): void {
  const stored = localStorage.getItem(STORED);
  theme.value = stored === 'light' || stored === 'dark' ? stored : 'auto';
  system.addEventListener('change', show);
  show();
}

export function setTheme(chosen: Theme): void {
  theme.value = chosen;
  localStorage.setItem(STORED, chosen);
  show();
}
