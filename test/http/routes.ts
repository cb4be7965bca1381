/** Which routes the service has, as its routers themselves tell. */
import { type AppDeps, createApp } from '../../src/express.js';

interface Layer {
  readonly handle: { readonly stack?: Layer[] };
  readonly route?: { readonly path: string | string[]; readonly stack: readonly { readonly method?: string }[] };
  match(path: string): false | { readonly path: string };
}

const NO_MAP = { styleUrl: null, origins: [], tilesFile: null };

/** `METHOD /path`, each once. */
export function routes(): string[] {
  const middleware = () => undefined;
  // Nothing is called: the app is only asked which routes it has.
  const deps = {
    sessions: { middleware },
    corsOrigins: [],
    basePath: '',
    trustProxy: 0,
    mqtt: null,
    map: NO_MAP,
    settings: { map: () => null },
  } as unknown as AppDeps;
  const { router } = createApp(deps) as unknown as { router: { stack: Layer[] } };
  return [...new Set(routesOf(router.stack))];
}

function routesOf(stack: readonly Layer[], prefix = ''): string[] {
  return stack.flatMap((layer) => {
    const { route, handle } = layer;
    if (route === undefined) return handle.stack === undefined ? [] : routesOf(handle.stack, prefix + mountOf(layer));
    const methods = route.stack.flatMap(({ method }) => (method === undefined ? [] : [method.toUpperCase()]));
    return [route.path].flat().flatMap((path) => methods.map((method) => `${method} ${prefix}${path}`));
  });
}

// A layer tells how much of a path it took.
function mountOf(layer: Layer): string {
  const taken = layer.match('/api/v1/any');
  return taken === false ? '' : taken.path;
}
