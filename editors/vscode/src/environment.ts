/** Makes a Python environment with Draftline in it: by uv where there is one, else by Python's venv and pip. */

import * as fs from 'node:fs';
import * as path from 'node:path';

import { incomplete, programIn } from './locate';
import { Cancelled, Failed, run, type Surroundings } from './processes';
import { explain, SetUpError } from './setUpErrors';

const LOWEST: readonly [number, number] = [3, 10];
const HIGHEST_MINOR = 14;
const INSTALL_PYTHON = 'Install Python 3.10 or newer with its module venv, or uv, and try again.';

export interface Wanted extends Surroundings {
  /** The folder of the environment; one that is there is replaced, but only by one that is whole. */
  folder: string;
  /** What is installed: a folder, or a requirement. */
  source: string;
  /** The program uv; without it, venv and pip of a Python on the PATH do it. */
  uv: string | undefined;
  windows: boolean;
  /** Is told what is done now. */
  step: (what: string) => void;
}

/** Environments that this process is making. */
const making = new Set<string>();

/**
 * Makes the environment, or leaves everything as it was.
 *
 * @throws Cancelled after `signal`, else SetUpError.
 */
export async function makeEnvironment(wanted: Wanted): Promise<void> {
  const { folder, source } = wanted;
  try {
    await fs.promises.mkdir(path.dirname(folder), { recursive: true });
    const broken = await claim(folder);
    try {
      if (broken) {
        await remove(folder);
      }
      await replace(wanted);
    } finally {
      await quietly(remove(incomplete(folder)));
      making.delete(folder);
    }
  } catch (error) {
    if (error instanceof Cancelled || error instanceof SetUpError) {
      throw error;
    }
    const said = error instanceof Failed ? error.output : error instanceof Error ? error.message : String(error);
    const tool = wanted.uv === undefined ? 'pip' : 'uv';
    throw explain(said, { tool, folder, source, free: await freeBytes(path.dirname(folder)) });
  }
}

/** Builds the environment in its place, since it could not be moved there; an old one comes back if that fails. */
async function replace(wanted: Wanted): Promise<void> {
  const { folder, source, uv } = wanted;
  const before = `${folder}.before`;
  await restore(before, folder);
  const python = uv === undefined ? await findPython(wanted) : undefined;
  if (fs.existsSync(folder)) {
    await fs.promises.rename(folder, before);
  }
  try {
    await build(wanted, python);
  } catch (error) {
    // Asked before anything is removed, which makes room.
    const free = await freeBytes(path.dirname(folder));
    await quietly(remove(folder).then(() => restore(before, folder)));
    throw error instanceof Failed ? explain(error.output, { tool: uv === undefined ? 'pip' : 'uv', folder, source, free }) : error;
  }
  await quietly(remove(before));
}

async function build(wanted: Wanted, python: string | undefined): Promise<void> {
  const { folder, source, uv, windows, step } = wanted;
  const inside = programIn(folder, 'python', windows);
  // Of the tools' own doings none may wait for an answer or fetch what was not agreed to.
  const env = { ...wanted.env, PYTHONUNBUFFERED: '1', UV_PYTHON_DOWNLOADS: 'never', UV_NO_PROGRESS: '1' };
  const tool = (command: string, args: string[]): Promise<string> => run(command, args, { ...wanted, env });
  step('making the environment');
  if (uv !== undefined) {
    await tool(uv, ['venv', '--python', `>=${LOWEST.join('.')}`, folder]);
  } else if (python !== undefined) {
    await tool(python, ['-I', '-m', 'venv', folder]);
  }
  step('installing');
  if (uv !== undefined) {
    await tool(uv, ['pip', 'install', '--python', inside, source]);
  } else {
    await tool(inside, ['-I', '-m', 'pip', 'install', '--disable-pip-version-check', '--no-input', '--progress-bar', 'off', source]);
  }
  if (!fs.existsSync(programIn(folder, 'draftline', windows))) {
    throw new SetUpError(
      `${source} was installed, but has no program "draftline".`,
      'Name a clone of the repository of Draftline in the setting draftline.installFrom, and try again.',
    );
  }
}

/** A Python that is new enough, by its name. */
async function findPython({ env, signal, hear, windows, step }: Wanted): Promise<string> {
  step('looking for Python 3.10 or newer');
  const minors = Array.from({ length: HIGHEST_MINOR - LOWEST[1] + 1 }, (_, index) => HIGHEST_MINOR - index);
  const names = windows ? ['py', 'python'] : ['python3', 'python', ...minors.map((minor) => `python3.${minor}`)];
  const old: string[] = [];
  for (const name of names) {
    try {
      const said = await run(name, ['-I', '-c', 'import sys; print("Python %d.%d" % sys.version_info[:2], sys.executable)'], { env, signal, hear });
      const [, major, minor, file] = /^Python (\d+)\.(\d+) (.*)$/m.exec(said) ?? [];
      if (Number(major) > LOWEST[0] || (Number(major) === LOWEST[0] && Number(minor) >= LOWEST[1])) {
        return name;
      }
      if (major !== undefined) {
        old.push(`${major}.${minor} (${file})`);
      }
    } catch (error) {
      if (error instanceof Cancelled) {
        throw error;
      }
      // Not there, or one that cannot run: the next name.
    }
  }
  if (old.length > 0) {
    throw new SetUpError(`Python is too old: ${[...new Set(old)].join(', ')}.`, INSTALL_PYTHON);
  }
  throw new SetUpError('There is no Python on the PATH.', INSTALL_PYTHON);
}

/**
 * Marks the environment as unfinished, so that no window starts it.
 *
 * @returns whether an earlier attempt ended in the middle.
 */
async function claim(folder: string): Promise<boolean> {
  const marker = incomplete(folder);
  const owner = await fs.promises.readFile(marker, 'utf8').catch(() => undefined);
  // A process of an earlier start of the machine may have had the number of this one.
  if (making.has(folder) || (owner !== undefined && Number(owner) !== process.pid && alive(Number(owner)))) {
    throw new SetUpError('Draftline is being set up already.', `Wait until that is done. If no window does it, delete ${marker}.`);
  }
  making.add(folder);
  await fs.promises.writeFile(marker, String(process.pid)).catch((error: unknown) => {
    making.delete(folder);
    throw error;
  });
  return owner !== undefined;
}

function alive(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0) {
    return false;
  }
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Puts a finished environment back that was set aside. */
async function restore(before: string, folder: string): Promise<void> {
  if (!fs.existsSync(before)) {
    return;
  }
  if (fs.existsSync(folder)) {
    await remove(before);
  } else {
    await fs.promises.rename(before, folder);
  }
}

function remove(file: string): Promise<void> {
  // On Windows what has just ended may still hold files.
  return fs.promises.rm(file, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
}

async function freeBytes(folder: string): Promise<number | undefined> {
  try {
    const { bavail, bsize } = await fs.promises.statfs(folder);
    return bavail * bsize;
  } catch {
    return undefined;
  }
}

/** What fails here matters less than what went wrong before it. */
async function quietly(doing: Promise<unknown>): Promise<void> {
  await doing.catch(() => undefined);
}
