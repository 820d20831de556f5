/**
 * Conditions by which rows are looked up one by one in the index of these columns, whatever the server believes of the
 * table. With a plain `=` it may read the table from one end to the other and compare each row with each that is asked for:
 * of a queue that was empty when the server last counted, it believes that there is one row to read. That cannot be
 * forbidden, as an index in its order may always be of use to a plain `=`; so these are no such thing to the planner.
 *
 * What is sorted by such a column has to be sorted by what it is compared with, for the same reason.
 */
export function is(column: string, value: string): string {
  return `${column} = any (array[${value}])`;
}

/** The same for an index of two columns. Of two such conditions the planner may leave the second out, but not of these. */
export function are(columns: readonly [string, string], values: readonly [string, string]): string {
  return `${is(columns[0], values[0])} and ${columns[1]} >= ${values[1]} and ${columns[1]} <= ${values[1]}`;
}

/** Written in a form that no index matches, on purpose: tasks and packs are looked up by their names, and the index of leases would be walked whole. */
export const IS_LEASED = "coalesce(lease_until_ms, -1) >= 0";
