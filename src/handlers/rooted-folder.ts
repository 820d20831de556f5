import { constants } from "node:fs";
import { type FileHandle, lstat, mkdir, open, realpath, rename, rm, stat } from "node:fs/promises";
import { dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { failed } from "./failed.ts";

/**
 * The one folder of the machine that handlers read from, or write to. A workflow's author may be a stranger: a path of
 * theirs never leads out of it, neither by `..` nor absolute nor through a symbolic link.
 */
export class RootedFolder {
  readonly #handler: string;
  readonly #setting: string;
  readonly #folder: string | undefined;

  /** Without a folder every use of it fails, and says which setting is missing. */
  constructor(handler: string, setting: string, folder: string | undefined) {
    this.#handler = handler;
    this.#setting = setting;
    this.#folder = folder;
  }

  /** Opens a file for reading. Whoever asks closes it. */
  async open(path: string): Promise<FileHandle> {
    const root = await this.#root();
    const wanted = join(root, checked(path));
    const found = await existing(wanted, path);
    assertInside(root, found, path);
    // Not through a link that was put there meanwhile, and without waiting for the other end of a pipe.
    const file = await open(found, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const [opened, again] = [await file.stat(), await existing(wanted, path)];
      const named = await stat(again);
      const isSame = opened.ino === named.ino && opened.dev === named.dev;
      if (again !== found || !isSame) throw forbidden(path, "was exchanged while it was opened");
      if (!opened.isFile()) throw forbidden(path, "is not a file");
      return file;
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** Where a file is to be written. Its folder is there afterwards. */
  async place(path: string): Promise<string> {
    if (this.#folder !== undefined) await mkdir(resolve(this.#folder), { recursive: true });
    const root = await this.#root();
    const wanted = join(root, checked(path));
    // What is there already must lie inside before anything is made in it.
    for (let at = dirname(wanted); ; at = dirname(at)) {
      const found = await realpath(at).catch(() => undefined);
      if (found === undefined) continue;
      assertInside(root, found, path);
      break;
    }
    await mkdir(dirname(wanted), { recursive: true });
    assertInside(root, await realpath(dirname(wanted)), path);
    const there = await lstat(wanted).catch(() => undefined);
    if (there !== undefined && !there.isFile()) throw forbidden(path, "is there, and is not a file");
    return wanted;
  }

  async #root(): Promise<string> {
    if (this.#folder === undefined) throw failed("SETTING_MISSING", { handler: this.#handler, setting: this.#setting });
    return existing(resolve(this.#folder), this.#folder);
  }
}

function checked(path: string): string {
  if (path.includes("\0")) throw forbidden(path, "contains a character that no name has");
  if (isAbsolute(path) || /^[a-z]:|^\\/i.test(path)) throw forbidden(path, "must not be absolute");
  if (path.split(/[/\\]/).includes("..")) throw forbidden(path, 'must not contain ".."');
  return path;
}

async function existing(wanted: string, path: string): Promise<string> {
  try {
    return await realpath(wanted);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR" || code === "ELOOP") throw failed("FILE_NOT_FOUND", { path });
    throw error;
  }
}

function assertInside(root: string, found: string, path: string): void {
  const below = relative(root, found);
  if (below === ".." || below.startsWith(`..${sep}`) || isAbsolute(below)) {
    throw forbidden(path, "leads out of the folder that the operator has opened");
  }
}

function forbidden(path: string, reason: string): Error {
  return failed("PATH_FORBIDDEN", { path, reason });
}

/**
 * Writes a file as a whole or not at all: under another name first, which `write` is given, then renamed. Whoever looks,
 * and whoever tries again after a crash, finds the old file or the new one. It stays the old one if `write` gives false.
 */
export async function writeWhole(
  target: string,
  id: string,
  write: (temporary: string) => Promise<boolean>,
): Promise<boolean> {
  const temporary = join(dirname(target), `.${id}.tmp`);
  try {
    if (!(await write(temporary))) return false;
    await synced(temporary);
    await rename(temporary, target);
  } finally {
    await rm(temporary, { force: true });
  }
  await synced(dirname(target));
  return true;
}

/** On the disk, not only on its way there. */
async function synced(path: string): Promise<void> {
  const file = await open(path, "r");
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
