import { spawnSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, rmdirSync, rmSync, statfsSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const MIB = 1024 * 1024;
const PIECE = Buffer.alloc(4096, 1);

/** A file system with little room, and a file that takes it up. Only root can have one, and not everywhere. */
export class SmallDisk {
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  static mount(mebibytes: number): SmallDisk | undefined {
    if (process.platform !== "linux" || process.getuid?.() !== 0) return undefined;
    const folder = mkdtempSync(join(tmpdir(), "millrace-disk-"));
    const args = ["-t", "tmpfs", "-o", `size=${mebibytes * MIB}`, "tmpfs", folder];
    if (spawnSync("mount", args).status === 0) return new SmallDisk(folder);
    rmdirSync(folder);
    return undefined;
  }

  get freeBytes(): number {
    const { bavail, bsize } = statfsSync(this.folder);
    return bavail * bsize;
  }

  /** Takes up all room but this much. */
  fill(leaveBytes = 0): void {
    const handle = openSync(join(this.folder, "ballast"), "a");
    try {
      while (this.freeBytes > leaveBytes) writeSync(handle, PIECE);
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "ENOSPC")) throw error;
    } finally {
      closeSync(handle);
    }
  }

  empty(): void {
    rmSync(join(this.folder, "ballast"), { force: true });
  }

  unmount(): void {
    spawnSync("umount", ["-l", this.folder]);
    rmdirSync(this.folder);
  }
}
