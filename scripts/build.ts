import { spawnSync } from "node:child_process";
import { cpSync, globSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";

/**
 * Makes `dist`, which the package ships: Node strips no types inside node_modules. The tree is that of the repository, so
 * that a file finds its neighbours and `schema` at the same places.
 */
const root = join(import.meta.dirname, "..");
const dist = join(root, "dist");

rmSync(dist, { recursive: true, force: true });
const tsc = join(root, "node_modules", ".bin", "tsc");
const { status, error } = spawnSync(tsc, ["--project", "tsconfig.build.json"], { cwd: root, stdio: "inherit" });
if (error !== undefined) throw error;
if (status !== 0) process.exit(status ?? 1);

/** What the compiler does not know of, and the code reads. */
for (const file of globSync("src/**/*.lua", { cwd: root })) {
  cpSync(join(root, file), join(dist, file), { recursive: true });
}
process.stdout.write(`${globSync("**/*.js", { cwd: dist }).length} modules in ${dirname(join(dist, "src"))}\n`);
