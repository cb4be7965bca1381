/** Values that a condition read, as people say them. */
import { formatValue } from '../home/values.js';

export const formatRead = (value: unknown): string => (value === null || value === undefined ? '' : formatValue(value));
