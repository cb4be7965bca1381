/** Prints JSON Schemas as TypeScript types. Supports the keywords that the API documents and the schemas of custom stores use. */

/** A JSON Schema, or any other part of a document. */
export type Schema = { readonly [name: string]: unknown };

const INDENT = '  ';
const IDENTIFIER = /^[A-Za-z_$][\w$]*$/;
const SIMPLE: ReadonlyMap<string, string> = new Map([
  ['string', 'string'],
  ['number', 'number'],
  ['integer', 'number'],
  ['boolean', 'boolean'],
  ['null', 'null'],
]);

/** The type of a schema; `depth` is the indentation of its members. */
export function printSchema(schema: unknown, depth = 0): string {
  if (typeof schema !== 'object' || schema === null) return schema === false ? 'never' : 'unknown';
  const part = schema as Schema;
  if (typeof part.$ref === 'string') return part.$ref.split('/').at(-1) as string;
  if ('const' in part) return printLiteral(part.const);
  if (Array.isArray(part.enum)) return union(part.enum.map(printLiteral));
  for (const name of ['anyOf', 'oneOf']) {
    if (Array.isArray(part[name])) return union(part[name].map((one) => printSchema(one, depth)));
  }
  if (Array.isArray(part.allOf)) return printAll(part, depth);
  if (Array.isArray(part.type)) return union(part.type.map((type) => printType(part, String(type), depth)));
  return printType(part, typeof part.type === 'string' ? part.type : guessType(part), depth);
}

const guessType = (part: Schema): string => ('properties' in part ? 'object' : 'items' in part ? 'array' : '');

function printType(part: Schema, type: string, depth: number): string {
  if (type === 'array') return printArray(part, depth);
  if (type === 'object') return printObject(part, depth);
  return SIMPLE.get(type) ?? 'unknown';
}

function printArray(part: Schema, depth: number): string {
  const item = printSchema(part.items ?? {}, depth);
  return /[|&]/.test(item) ? `(${item})[]` : `${item}[]`;
}

/** Prints an intersection of all parts; a required name may be declared in any of them. */
function printAll(part: Schema, depth: number): string {
  const parts = (part.allOf as unknown[]).filter((one) =>
    Object.keys(one as object).some((key) => key !== 'description'),
  );
  const all = parts.map((one) => printSchema(one, depth)).map((text) => (/\|/.test(text) ? `(${text})` : text));
  const whole = all.join(' & ') || 'unknown';
  const required = (part.required ?? []) as string[];
  return required.length === 0 ? whole : `WithRequired<${whole}, ${union(required.map(printLiteral))}>`;
}

function printObject(part: Schema, depth: number): string {
  const properties = Object.entries((part.properties ?? {}) as Record<string, Schema>);
  const rest = restOf(part, depth);
  if (properties.length === 0) return rest === null ? '{ [name: string]: never }' : `{ [name: string]: ${rest} }`;
  const required = new Set((part.required ?? []) as string[]);
  const pad = INDENT.repeat(depth + 1);
  const lines = properties.map(([name, schema]) => {
    const optional = required.has(name) ? '' : '?';
    return `${printComment(schema.description, pad)}${pad}${printName(name)}${optional}: ${printSchema(schema, depth + 1)};\n`;
  });
  if (rest !== null && part.additionalProperties !== undefined) {
    // TypeScript wants the declared types among those of the rest.
    const declared = properties.map(([name, schema]) => [
      printSchema(schema, depth + 1),
      ...(required.has(name) ? [] : ['undefined']),
    ]);
    lines.push(`${pad}[name: string]: ${rest === 'unknown' ? rest : union([rest, ...declared.flat()])};\n`);
  }
  return `{\n${lines.join('')}${INDENT.repeat(depth)}}`;
}

function restOf(part: Schema, depth: number): string | null {
  const { additionalProperties: rest } = part;
  return rest === false ? null : printSchema(rest === true ? {} : (rest ?? {}), depth);
}

/** Prints a comment above a declaration, or nothing without a description. */
export function printComment(text: unknown, pad = ''): string {
  if (typeof text !== 'string' || text === '') return '';
  return `${pad}/** ${text.replaceAll('*/', '*\\/').replace(/\s+/g, ' ')} */\n`;
}

/** The name of a property. */
export function printName(name: string): string {
  return IDENTIFIER.test(name) ? name : printLiteral(name);
}

function printLiteral(value: unknown): string {
  if (typeof value === 'string')
    return `'${value.replaceAll('\\', '\\\\').replaceAll("'", "\\'").replaceAll('\n', '\\n')}'`;
  if (Array.isArray(value)) return `[${value.map(printLiteral).join(', ')}]`;
  return typeof value === 'object' && value !== null ? 'unknown' : String(value);
}

const union = (types: readonly string[]): string => [...new Set(types)].join(' | ') || 'never';
