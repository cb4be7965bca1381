/** An eye that is open. */
export function Logo({ size = 28 }: { size?: number }) {
  return (
    <svg class="logo" width={size} height={size} viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" />
      <path d="M4.5 16S8.7 8.5 16 8.5 27.5 16 27.5 16 23.3 23.5 16 23.5 4.5 16 4.5 16Z" />
      <circle cx="16" cy="16" r="3.6" />
    </svg>
  );
}
