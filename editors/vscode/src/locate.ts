/** Where the server is: settings, environments of the workspace, PATH, the extension's own environment. */

import * as path from 'node:path';

/** How to run Draftline: `command ...args SUBCOMMAND`. */
export interface Installation {
  command: string;
  args: string[];
  /** Where it was found, in words. */
  source: string;
}

/** Why it was not found; `looked` are places in the order in which they were searched. */
export interface Missing {
  message: string;
  looked: string[];
}

export interface Places {
  /** Setting `draftline.path`, "" if unset. */
  path: string;
  /** Setting `draftline.pythonPath`, "" if unset. */
  pythonPath: string;
  /** Folders of the workspace; empty where it is not trusted, since what they hold would be executed. */
  folders: string[];
  /** Value of the variable PATH. */
  searchPath: string;
  /** The environment that the extension makes. */
  ownEnvironment: string;
  home: string;
  windows: boolean;
}

const ENVIRONMENTS = ['.venv', 'venv', 'env'];

/** The program of an environment of Python. */
export function programIn(environment: string, name: string, windows: boolean): string {
  const join = windows ? path.win32.join : path.posix.join;
  return windows ? join(environment, 'Scripts', `${name}.exe`) : join(environment, 'bin', name);
}

/** A file that says, while it is there, that an environment is not finished. */
export function incomplete(environment: string): string {
  return `${environment}.incomplete`;
}

/** The file of a program that is looked for on the PATH. */
export function onPath(
  name: string,
  { searchPath, windows }: Pick<Places, 'searchPath' | 'windows'>,
  exists: (file: string) => boolean,
): string | undefined {
  const flavour = windows ? path.win32 : path.posix;
  return searchPath
    .split(flavour.delimiter)
    .filter((folder) => folder !== '')
    .flatMap((folder) => (windows ? ['.exe', '.cmd', '.bat'] : ['']).map((end) => flavour.join(folder, name + end)))
    .find(exists);
}

/** The file that a setting names, by its path or as a program on the PATH; an error in words if there is none. */
export function named(
  setting: string,
  value: string,
  places: Pick<Places, 'searchPath' | 'windows' | 'home'>,
  exists: (file: string) => boolean,
): { file: string } | { wanted: string; message: string } {
  const flavour = places.windows ? path.win32 : path.posix;
  const wanted = value === '~' || value.startsWith('~/') ? flavour.join(places.home, value.slice(1)) : value;
  const bare = !wanted.includes('/') && !wanted.includes(flavour.sep);
  const file = bare ? onPath(wanted, places, exists) : exists(wanted) ? wanted : undefined;
  if (file === undefined) {
    const where = bare ? 'is not on the PATH' : 'does not exist';
    return { wanted, message: `The setting ${setting} names ${wanted}, which ${where}.` };
  }
  return { file };
}

export function isMissing(found: Installation | Missing): found is Missing {
  return 'looked' in found;
}

/**
 * The installation to use. A setting that names nothing is an error and never passed over: the user would
 * run something else than what was asked for.
 *
 * @param exists whether a path is a file.
 */
export function locate(places: Places, exists: (file: string) => boolean): Installation | Missing {
  const flavour = places.windows ? path.win32 : path.posix;
  for (const [setting, value, args] of [
    ['draftline.path', places.path, []],
    ['draftline.pythonPath', places.pythonPath, ['-m', 'lsp_server']],
  ] as const) {
    if (value.trim() === '') {
      continue;
    }
    const found = named(setting, value.trim(), places, exists);
    if (!('file' in found)) {
      return { message: found.message, looked: [found.wanted] };
    }
    return { command: found.file, args: [...args], source: `the setting ${setting}` };
  }

  const looked: string[] = [];
  const environments = places.folders.flatMap((folder) => ENVIRONMENTS.map((name) => flavour.join(folder, name)));
  for (const environment of environments) {
    const program = programIn(environment, 'draftline', places.windows);
    looked.push(program);
    if (exists(program)) {
      return { command: program, args: [], source: 'an environment of the workspace' };
    }
  }
  looked.push('PATH');
  const program = onPath('draftline', places, exists);
  if (program !== undefined) {
    return { command: program, args: [], source: 'the PATH' };
  }
  const own = programIn(places.ownEnvironment, 'draftline', places.windows);
  looked.push(own);
  if (exists(own) && !exists(incomplete(places.ownEnvironment))) {
    return { command: own, args: [], source: "the extension's own environment" };
  }
  return { message: 'No Python environment with Draftline was found.', looked };
}
