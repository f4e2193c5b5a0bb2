/** Runs a program to its end: its lines as they come, and an early end together with all that it started. */

import { type ChildProcess, spawn } from 'node:child_process';
import * as os from 'node:os';

const KEPT_OUTPUT = 20_000;
/** What does not end when it is asked to is killed after so long. */
const GRACE_MS = 3000;

/** The user no longer wants it. */
export class Cancelled extends Error {}

/** A program could not be started, or ended with another status than 0. */
export class Failed extends Error {
  /** @param output the last it said, or why it could not be started. */
  constructor(
    readonly command: string,
    readonly output: string,
    how: string,
  ) {
    super(`${command} ${how}`);
  }
}

export interface Surroundings {
  env: NodeJS.ProcessEnv;
  signal: AbortSignal;
  hear: (line: string) => void;
}

/**
 * The output of a program that ended with status 0.
 *
 * It runs in the home directory: from a folder of the workspace, that folder's modules and configuration would count.
 */
export function run(command: string, args: string[], { env, signal, hear }: Surroundings): Promise<string> {
  if (signal.aborted) {
    return Promise.reject(new Cancelled());
  }
  hear([command, ...args].join(' '));
  const windows = process.platform === 'win32';
  return new Promise((resolve, reject) => {
    // Elsewhere it leads a group of processes, which can be ended as a whole.
    const child = spawn(command, args, { cwd: os.homedir(), env, windowsHide: true, detached: !windows, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    const pieces = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].setEncoding('utf8');
      child[name].on('data', (text: string) => {
        output = (output + text).slice(-KEPT_OUTPUT);
        const lines = (pieces[name] + text).split(/\r\n|\r|\n/);
        pieces[name] = lines.pop() ?? '';
        lines.filter((line) => line.trim() !== '').forEach(hear);
      });
    }
    let killer: NodeJS.Timeout | undefined;
    const stop = (): void => {
      end(child, windows, 'SIGTERM');
      killer = setTimeout(() => end(child, windows, 'SIGKILL'), GRACE_MS);
    };
    signal.addEventListener('abort', stop, { once: true });
    const ended = (): void => {
      clearTimeout(killer);
      signal.removeEventListener('abort', stop);
    };
    child.on('error', (error) => {
      ended();
      reject(new Failed(command, error.message, 'could not be started'));
    });
    child.on('close', (code, how) => {
      ended();
      for (const rest of Object.values(pieces).filter((piece) => piece.trim() !== '')) {
        hear(rest);
      }
      if (signal.aborted) {
        reject(new Cancelled());
      } else if (code === 0) {
        resolve(output);
      } else {
        reject(new Failed(command, output, how === null ? `ended with status ${code}` : `was ended by ${how}`));
      }
    });
  });
}

function end(child: ChildProcess, windows: boolean, signal: NodeJS.Signals): void {
  if (child.pid === undefined) {
    return;
  }
  if (windows) {
    spawn('taskkill', ['/pid', String(child.pid), '/T', '/F'], { windowsHide: true, stdio: 'ignore' }).on('error', () => child.kill());
    return;
  }
  try {
    process.kill(-child.pid, signal);
  } catch {
    // It has ended meanwhile.
  }
}
