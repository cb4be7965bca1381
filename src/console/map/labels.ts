/** Labels of the map in the language of the reader. Pure. */
import type { ExpressionSpecification, StyleSpecification } from 'maplibre-gl';

/** The name in this language; or else in Latin letters, which all languages of the console have; or else as people there write it. */
export function nameIn(language: string, others: readonly string[] = []): ExpressionSpecification {
  const names = [`name:${language}`, `name_${language}`, 'name:latin', 'name', ...others];
  return ['coalesce', ...[...new Set(names)].map((name) => ['get', name])] as unknown as ExpressionSpecification;
}

/** What styles add to the Latin name: one name is enough. */
const OTHER_SCRIPTS = /nonlatin$/;
const TOKEN = /\{([^}]+)\}/;

/** In any language, as in `name:zh-Hans` and `name_en`. */
const NAME = /^name(:[a-z]{2,3}([-_]\w+)*|_[a-z]{2,3}|[:_](latin|nonlatin|int))?$/;
const isName = (property: unknown): boolean => typeof property === 'string' && NAME.test(property);

/**
 * The text of a label, as styles write it (with tokens such as `{name}`, in steps of the zoom, or as an expression), with names in this
 * language; null for one without a name, which stays as it is: numbers of roads and houses.
 */
export function labelIn(text: unknown, language: string): ExpressionSpecification | null {
  const expression = toExpression(text);
  return expression === null || !hasName(expression)
    ? null
    : (translate(expression, language) as ExpressionSpecification);
}

/** The labels of a style that contain names, by their layers. */
export function namedLayersOf({ layers }: Pick<StyleSpecification, 'layers'>): ReadonlyMap<string, unknown> {
  const texts = layers.map(
    (layer) => [layer.id, layer.type === 'symbol' ? layer.layout?.['text-field'] : null] as const,
  );
  return new Map(texts.filter(([, text]) => labelIn(text, 'en') !== null));
}

function toExpression(text: unknown): unknown[] | null {
  if (Array.isArray(text)) return text;
  if (typeof text === 'string') return fromTokens(text);
  const stops = (text as { stops?: readonly [number, string][] } | null | undefined)?.stops;
  const [first, ...others] = stops ?? [];
  if (first === undefined) return null;
  return ['step', ['zoom'], fromTokens(first[1]), ...others.flatMap(([zoom, one]) => [zoom, fromTokens(one)])];
}

const fromTokens = (text: string): unknown[] => [
  'concat',
  ...text.split(TOKEN).map((part, index) => (index % 2 === 0 ? part : ['to-string', ['get', part]])),
];

/** The properties that an expression uses in these ways. */
function propertiesOf(expression: unknown, operators: readonly string[]): unknown[] {
  if (!Array.isArray(expression)) return [];
  const [operator, ...values] = expression;
  if (operators.includes(operator)) return values.slice(0, 1);
  return operator === 'literal' ? [] : values.flatMap((value) => propertiesOf(value, operators));
}

const hasName = (expression: unknown): boolean => propertiesOf(expression, ['get']).some(isName);
const hasZoom = (expression: unknown): boolean =>
  Array.isArray(expression) && (expression[0] === 'zoom' || expression.slice(1).some(hasZoom));

/** The operators whose arguments are text, and those whose arguments are by turns. Conditions stay as they are. */
const TEXTS = new Set(['coalesce', 'concat', 'downcase', 'format', 'string', 'to-string', 'upcase']);
const isTextOf: Readonly<Record<string, (index: number, count: number) => boolean>> = {
  case: (index, count) => index % 2 === 0 || index === count - 1,
  match: (index, count) => index > 1 && (index % 2 === 1 || index === count - 1),
  step: (index) => index % 2 === 0,
};
/** These change how a name is written. */
const FORMS = new Set(['downcase', 'format', 'upcase']);

function translate(expression: unknown, language: string): unknown {
  if (!Array.isArray(expression) || !hasName(expression)) return expression;
  const [operator] = expression;
  const isPlain =
    !FORMS.has(operator) && !hasZoom(expression) && propertiesOf(expression, ['get', 'has']).every(isName);
  if (isPlain) return plainName(propertiesOf(expression, ['get']) as string[], language);
  const isText = (index: number): boolean =>
    TEXTS.has(operator) || (isTextOf[operator]?.(index, expression.length) ?? false);
  return expression.map((value, index) => (index > 0 && isText(index) ? translate(value, language) : value));
}

/** Styles are also made for tiles that have no other names than those that they read. */
function plainName(names: readonly string[], language: string): unknown {
  const others = names.filter((name) => !OTHER_SCRIPTS.test(name));
  return others.length === 0 ? '' : nameIn(language, others);
}
