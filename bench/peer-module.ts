import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(import.meta.url);

/**
 * A package of `bench/node_modules`, seen through the part of it that is called here. By name, because the repository is
 * checked and tested without the peers.
 */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- who names the package knows its shape
export async function peerModule<Shape>(name: string): Promise<Shape> {
  return (await import(pathToFileURL(require.resolve(name)).href)) as Shape;
}
