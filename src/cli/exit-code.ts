/** What a command's exit says. Scripts rely on it: never change one. */
export const EXIT = {
  done: 0,
  /** The execution ended FAILED. */
  failed: 1,
  usage: 2,
  /** A definition, an input or a setting does not fit. */
  invalid: 3,
  notFound: 4,
  /** A key is missing or may not, or the state of the execution forbids it. */
  notAllowed: 5,
  /** Cannot reach the server or store, or it cannot serve now. */
  unreachable: 6,
  cancelled: 7,
  /** A person has to decide, and `--no-wait-approval` was given. */
  waitingForPerson: 8,
  /** The execution ended PARTIAL. */
  partial: 9,
  /** `--timeout` has passed; the execution goes on. */
  timeout: 124,
  interrupted: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** For `run` and `watch`: what the end of an execution comes to. */
export function exitCodeOf(status: string): ExitCode {
  switch (status) {
    case "COMPLETED":
      return EXIT.done;
    case "PARTIAL":
      return EXIT.partial;
    case "CANCELLED":
      return EXIT.cancelled;
    default:
      return EXIT.failed;
  }
}
