/**
 * What the function `lease_ms()` answers, for statements that run for every step: a function that reads a table is planned
 * anew in every statement that calls it, which takes the server longer than all the rest of a small one.
 */
export const LEASE_NOW_MS = `(select greatest(wall_ms(), clock.wall_ms) + clock.offset_ms from clock)`;

/** The time, once for all rows of a statement: as the default of a column it is worked out for each, which takes as long as writing one. */
export const WALL_NOW_MS = `(select wall_ms())`;
