/**
 * Scans the structure of a JSON text while it arrives, before it is parsed. A short text can hold very many values: those of
 * 16 MiB of `[{},{},…` take thirty times the memory.
 */
import { LIMITS } from './limits.js';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const ARRAY_BEGIN = 0x5b;
const ARRAY_END = 0x5d;
const OBJECT_BEGIN = 0x7b;
const OBJECT_END = 0x7d;
/** One more than is accepted, so that the check of the value names its place. */
const DEPTH = LIMITS.jsonDepth + 1;

/** A slice of a list, without the comma or bracket at either end. */
export interface Piece {
  readonly begin: number;
  readonly end: number;
  readonly items: number;
}

/** Scans a text chunk by chunk. */
export class JsonScan {
  #isText = false;
  #isEscaped = false;
  #position = 0;
  #containers = 0;
  #values = 0;
  #itemValues = 0;
  #depth = 0;
  /** For each container around the current position: whether it is a list, and its number of commas. */
  readonly #lists = new Uint8Array(DEPTH + 1);
  readonly #commas = new Uint32Array(DEPTH + 1);
  readonly #pieces: Piece[] = [];
  #pieceBegin = 0;
  #pieceItems = 1;
  #roots = 0;
  #end = -1;

  /** Scans the next chunk. Returns what is wrong with the text so far, or null. */
  take(chunk: Uint8Array): string | null {
    for (let index = 0; index < chunk.length; index++) {
      const byte = chunk[index] as number;
      if (this.#isText) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (byte === BACKSLASH) this.#isEscaped = true;
        else if (byte === QUOTE) this.#isText = false;
      } else if (byte === QUOTE) this.#isText = true;
      else if (byte === COMMA || (byte | 0x20) === OBJECT_BEGIN || (byte | 0x20) === OBJECT_END) {
        const fault = this.#follow(byte, this.#position + index);
        if (fault !== null) return fault;
      }
    }
    this.#position += chunk.length;
    return null;
  }

  /** The pieces of a list, each of at least `bodyPieceBytes` except the last; null for a text that is not a list. */
  pieces(): readonly Piece[] | null {
    return this.#roots === 1 && this.#end !== -1 ? this.#pieces : null;
  }

  #follow(byte: number, position: number): string | null {
    if (byte === COMMA) return this.#addComma(position);
    if (byte === ARRAY_BEGIN || byte === OBJECT_BEGIN) return this.#begin(byte === ARRAY_BEGIN, position);
    if (this.#depth === 0) return null;
    if (this.#depth === 1 && this.#lists[1] === 1 && byte === ARRAY_END) {
      this.#addPiece(position);
      this.#end = position;
    }
    this.#depth--;
    return null;
  }

  #begin(isList: boolean, position: number): string | null {
    if (++this.#depth > DEPTH && !this.#isInItem()) return `nested more than ${LIMITS.jsonDepth} deep`;
    if (++this.#containers > LIMITS.bodyContainers) return `more than ${LIMITS.bodyContainers} objects and lists`;
    this.#lists[this.#depth] = isList ? 1 : 0;
    this.#commas[this.#depth] = 0;
    if (this.#depth === 1) {
      this.#roots++;
      this.#pieceBegin = position + 1;
    }
    return null;
  }

  #addComma(position: number): string | null {
    const fault = this.#isInItem() ? null : this.#countComma();
    if (fault !== null) return fault;
    if (++this.#values > LIMITS.bodyValues) return `more than ${LIMITS.bodyValues} values`;
    if (this.#depth > 1 || this.#lists[1] === 0) {
      if (++this.#itemValues > LIMITS.bodyItemValues) return `more than ${LIMITS.bodyItemValues} values in one object`;
    } else {
      this.#itemValues = 0;
      if (position - this.#pieceBegin >= LIMITS.bodyPieceBytes) this.#addPiece(position);
      else this.#pieceItems++;
    }
    return null;
  }

  #countComma(): string | null {
    const commas = (this.#commas[this.#depth] as number) + 1;
    this.#commas[this.#depth] = commas;
    if (this.#lists[this.#depth] === 1) {
      return commas < LIMITS.jsonArrayItems ? null : `a list of more than ${LIMITS.jsonArrayItems} items`;
    }
    return commas < LIMITS.jsonKeys || this.#depth === 0 ? null : `an object of more than ${LIMITS.jsonKeys} fields`;
  }

  /** Whether the position is within an item of a list. Each item is checked for itself, so that one costs none of the others. */
  #isInItem(): boolean {
    return this.#depth > 1 && this.#lists[1] === 1;
  }

  #addPiece(position: number): void {
    this.#pieces.push({ begin: this.#pieceBegin, end: position, items: this.#pieceItems });
    this.#pieceBegin = position + 1;
    this.#pieceItems = 1;
  }
}
