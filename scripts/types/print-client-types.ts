// Prints the types of src/client from the API documents: schemas, routes and events.
import { printComment, printName, printSchema, type Schema } from '../../src/cli/print-schema.js';

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly parameters: Readonly<Record<string, Parameter>>;
  };
}

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly schema: Schema;
  readonly description?: string;
}

interface Body {
  readonly required?: boolean;
  readonly content: Readonly<Record<string, { readonly schema: Schema }>>;
}

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly parameters?: readonly { readonly $ref: string }[];
  readonly requestBody?: Body;
  readonly responses: Readonly<Record<string, Body>>;
}

interface Events {
  readonly components: { readonly messages: Readonly<Record<string, { summary: string; payload: Schema }>> };
  readonly channels: { readonly stream: { readonly messages: Readonly<Record<string, unknown>> } };
}

const HEAD = `/** The types of the interface, printed from its OpenAPI and AsyncAPI documents: edit those instead. */

/** A moment: milliseconds since the epoch, ISO 8601 (UTC without a zone), or a date. */
export type Time = number | string | Date;

/** The same with these fields always there. */
export type WithRequired<T, K extends keyof T> = T & { [P in K]-?: T[P] };

/** A value that a field is compared with. */
export type WhereValue = string | number | boolean | null;

`;

const METHODS = ['get', 'post', 'put', 'patch', 'delete'];
const TIMES = new Set(['from', 'to', 'begin', 'end']);

/** The whole file. */
export function printClientTypes(openApi: object, asyncApi: object): string {
  const document = openApi as Document;
  const events = asyncApi as Events;
  return [HEAD, printSchemas(document), printRoutes(document), printStores(document), printEvents(events)].join('');
}

function printSchemas({ components }: Document): string {
  const declared = Object.entries(components.schemas).map(
    ([name, schema]) => `${printComment(schema.description)}export type ${name} = ${printSchema(schema)};\n\n`,
  );
  return declared.join('');
}

function operationsOf({ paths }: Document): [string, Operation][] {
  return Object.entries(paths).flatMap(([path, item]) =>
    METHODS.flatMap((method) => {
      const operation = item[method];
      return operation === undefined ? [] : [[`${method.toUpperCase()} ${path}`, operation] as [string, Operation]];
    }),
  );
}

function printRoutes(document: Document): string {
  const routes = operationsOf(document).map(([route, operation]) => {
    const names = [...route.matchAll(/\{(\w+)\}/g)].map(([, name]) => `${name}: string`);
    return [
      printComment(operation.summary, '  '),
      `  '${route}': {\n`,
      `    path: ${names.length === 0 ? 'undefined' : `{ ${names.join('; ')} }`};\n`,
      `    query: ${printQuery(document, operation)};\n`,
      `    body: ${printBody(operation)};\n`,
      `    answer: ${printContent(operation.responses['200'])};\n`,
      '  };\n',
    ].join('');
  });
  return `/** Every route: what goes in, and what comes out. */\nexport interface Routes {\n${routes.join('')}}\n\n`;
}

function printQuery({ components }: Document, { parameters = [] }: Operation): string {
  const found = parameters.map(({ $ref }) => components.parameters[$ref.split('/').at(-1) as string] as Parameter);
  const inQuery = found.filter((parameter) => parameter.in === 'query');
  if (inQuery.length === 0) return 'undefined';
  const lines = inQuery.map(
    (parameter) =>
      `${printComment(parameter.description, '      ')}      ${printName(parameter.name)}${parameter.required ? '' : '?'}: ${typeOf(parameter)};\n`,
  );
  return `{\n${lines.join('')}    }`;
}

function typeOf({ name, schema }: Parameter): string {
  if (TIMES.has(name)) return 'Time';
  if (name === 'where') return '{ [field: string]: WhereValue | readonly WhereValue[] }';
  // Lists are readonly, so that constants are assignable.
  const type = printSchema(schema, 3);
  return type.endsWith('[]') ? `readonly ${type}` : type;
}

function printBody({ requestBody }: Operation): string {
  if (requestBody === undefined) return 'undefined';
  return `${printContent(requestBody)}${requestBody.required ? '' : ' | undefined'}`;
}

/** The JSON type of an answer; any other content type is text. */
function printContent(body: Body | undefined): string {
  const [type, content] = Object.entries(body?.content ?? {}).find(([name]) => name === 'application/json') ?? [];
  return type === undefined || content === undefined ? 'string' : printSchema(content.schema, 2);
}

/** The stores, each with the types of its entities. */
function printStores(document: Document): string {
  const { schemas } = document.components;
  const stores = operationsOf(document).flatMap(([route, { operationId }]) => {
    const [, store] = /^GET \/api\/v1\/(\w+)\/\{id\}$/.exec(route) ?? [];
    const title = operationId.replace(/^get/, '');
    if (store === undefined || schemas[`${title}Fields`] === undefined) return [];
    const nameOf = (suffix: string) => (schemas[title + suffix] === undefined ? 'never' : title + suffix);
    const entity = schemas[title] === undefined ? `${title}Fields` : title;
    const created = document.paths[`/api/v1/${store}`]?.post?.responses['200'];
    return [
      `  ${store}: { entity: ${entity}; fields: ${title}Fields; create: ${nameOf('New')}; change: ${nameOf('Change')}; created: ${created === undefined ? 'never' : printContent(created)} };\n`,
    ];
  });
  return `/** The built-in stores. \`fields\` is what of an entity an answer to \`only\` holds. */\nexport interface Stores {\n${stores.join('')}}\n\n`;
}

function printEvents({ components, channels }: Events): string {
  const lines = Object.keys(channels.stream.messages).map((name) => {
    const { summary, payload } = components.messages[name] as { summary: string; payload: Schema };
    return `${printComment(summary, '  ')}  ${printName(name)}: ${printSchema(payload, 1)};\n`;
  });
  return `/** Live events by name, each with its payload. */\nexport interface EventPayloads {\n${lines.join('')}}\n`;
}
