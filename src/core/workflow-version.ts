/** A version as a store knows it: `3` and `"3"` are the number, anything else is a hash, or nothing that there could be. */
export function asVersion(version: string | number | undefined): string | number | undefined {
  if (typeof version !== "string") return version;
  if (/^[1-9]\d{0,14}$/.test(version)) return Number(version);
  return /^[0-9a-f]{64}$/.test(version) ? version : "";
}
