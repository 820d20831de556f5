import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * Adds the builds for other platforms to package-lock.json. A registry mirror that does not carry them makes `npm install`
 * leave them out, and then `npm ci` refuses the file as incomplete, on every machine. Run it after `npm install`; for the
 * package of another folder, name that: `node scripts/complete-lockfile.ts bench`.
 */
const file = join(import.meta.dirname, "..", process.argv[2] ?? ".", "package-lock.json");
const lock = JSON.parse(readFileSync(file, "utf8")) as {
  packages: Record<string, { version?: string; dev?: boolean; optionalDependencies?: Record<string, string> }>;
};

const OPERATING_SYSTEMS = ["android", "darwin", "freebsd", "linux", "openharmony", "win32"];
const ARCHITECTURES = ["arm64", "arm", "x64", "ia32", "ppc64", "s390x", "riscv64", "wasm32"];

/** What a name such as `binding-linux-arm64-musl` says about the machines it is for. */
function platformOf(name: string): object {
  const words = name.slice(name.indexOf("/") + 1).split("-");
  const os = OPERATING_SYSTEMS.filter((word) => words.includes(word));
  const cpu = ARCHITECTURES.filter((word) => words.includes(word));
  const libc =
    words.includes("musl") || words.includes("musleabihf")
      ? ["musl"]
      : words.some((word) => word.startsWith("gnu"))
        ? ["glibc"]
        : [];
  return { ...(os.length > 0 && { os }), ...(cpu.length > 0 && { cpu }), ...(libc.length > 0 && { libc }) };
}

let added = 0;
for (const { optionalDependencies, dev } of Object.values(lock.packages)) {
  for (const [name, version] of Object.entries(optionalDependencies ?? {})) {
    const key = `node_modules/${name}`;
    if (lock.packages[key] !== undefined || !/^[0-9.]+$/.test(version)) continue;
    lock.packages[key] = { version, ...platformOf(name), ...(dev === true && { dev }), optional: true } as never;
    added++;
  }
}
const sorted = Object.fromEntries(Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : 1)));
writeFileSync(file, `${JSON.stringify({ ...lock, packages: sorted }, null, 2)}\n`);
process.stdout.write(`${added} added\n`);
