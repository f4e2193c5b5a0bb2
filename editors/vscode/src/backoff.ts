/** When to start a crashed server again, and when to leave it. */

const FIRST_MS = 1000;
const LONGEST_MS = 60_000;
/** A server that ran for so long has started well: its crash counts as a first one. */
const STEADY_MS = 180_000;
const TRIES = 5;

export class Backoff {
  private crashes = 0;

  /**
   * A server has crashed.
   *
   * @param ranMs how long it had been running.
   * @returns milliseconds until the next start, undefined to give up.
   */
  crashed(ranMs: number): number | undefined {
    this.crashes = ranMs >= STEADY_MS ? 1 : this.crashes + 1;
    if (this.crashes > TRIES) {
      return undefined;
    }
    return Math.min(LONGEST_MS, FIRST_MS * 2 ** (this.crashes - 1));
  }

  /** The user has started it: all tries are there again. */
  reset(): void {
    this.crashes = 0;
  }
}

/** Why a process ended, in words: its status and the last thing it said. */
export function describeExit(code: number | null, signal: string | null, stderr: string): string {
  const how = signal !== null ? `was ended by ${signal}` : `ended with status ${code ?? 'unknown'}`;
  const lines = stderr.split(/\r?\n/).map((line) => line.trim());
  const last = lines.filter((line) => line !== '').at(-1);
  return last === undefined ? `The server ${how}.` : `The server ${how}: ${last}`;
}
