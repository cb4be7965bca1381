/** A list of which only the visible rows exist: fifty thousand rows cost as much as twenty. On paper, nothing scrolls: all are there. */
import { signal, useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

interface VirtualListProps {
  readonly count: number;
  readonly rowPx: number;
  readonly label: string;
  readonly renderRow: (index: number) => ComponentChildren;
  /** The row to bring into view when it changes; -1 for none. */
  readonly shown?: number;
}

const SPARE_ROWS = 4;
/** Of more rows, the first ones are printed. */
const MOST_PRINTED = 2_000;

const isPrinting = signal(false);
addEventListener('beforeprint', () => {
  isPrinting.value = true;
});
addEventListener('afterprint', () => {
  isPrinting.value = false;
});

interface VirtualRows {
  readonly count: number;
  readonly rowPx: number;
  readonly shown: number;
  /** What stays above the rows when they are scrolled. */
  readonly headPx?: number;
}

/** Which rows of an element that scrolls are in view. */
export function useVirtualRows({ count, rowPx, shown, headPx = 0 }: VirtualRows) {
  const element = useRef<HTMLDivElement>(null);
  const top = useSignal(0);
  const height = useSignal(800);
  useEffect(() => {
    const list = element.current;
    if (list === null) return;
    const observer = new ResizeObserver(() => {
      height.value = list.clientHeight;
    });
    observer.observe(list);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    const list = element.current;
    if (list === null || shown < 0) return;
    const begin = shown * rowPx;
    const end = (shown + 1) * rowPx + headPx;
    if (begin < list.scrollTop) list.scrollTop = begin;
    else if (end > list.scrollTop + list.clientHeight) list.scrollTop = end - list.clientHeight;
  }, [shown]);
  const onScroll = (event: { readonly currentTarget: HTMLElement }): void => {
    top.value = event.currentTarget.scrollTop;
  };
  if (isPrinting.value) return { element, first: 0, last: Math.min(count, MOST_PRINTED), onScroll };
  const first = Math.max(0, Math.floor(top.value / rowPx) - SPARE_ROWS);
  const last = Math.max(first, Math.min(count, Math.ceil((top.value + height.value) / rowPx) + SPARE_ROWS));
  return { element, first, last, onScroll };
}

export function VirtualList({ count, rowPx, label, renderRow, shown = -1 }: VirtualListProps) {
  const { element, first, last, onScroll } = useVirtualRows({ count, rowPx, shown });
  return (
    <div ref={element} class="virtual-list" onScroll={onScroll}>
      <ul
        aria-label={label}
        style={isPrinting.value ? undefined : { height: `${count * rowPx}px`, paddingTop: `${first * rowPx}px` }}
      >
        {Array.from({ length: last - first }, (_, index) => renderRow(first + index))}
      </ul>
    </div>
  );
}
