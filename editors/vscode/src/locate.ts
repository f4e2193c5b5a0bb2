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
  const expand = (file: string): string =>
    file === '~' || file.startsWith('~/') ? flavour.join(places.home, file.slice(1)) : file;
  const onPath = (name: string): string | undefined =>
    places.searchPath
      .split(flavour.delimiter)
      .filter((folder) => folder !== '')
      .flatMap((folder) => (places.windows ? ['.exe', '.cmd', '.bat'] : ['']).map((end) => flavour.join(folder, name + end)))
      .find(exists);

  for (const [setting, value, args] of [
    ['draftline.path', places.path, []],
    ['draftline.pythonPath', places.pythonPath, ['-m', 'lsp_server']],
  ] as const) {
    if (value.trim() === '') {
      continue;
    }
    const wanted = expand(value.trim());
    const bare = !wanted.includes('/') && !wanted.includes(flavour.sep);
    const file = bare ? onPath(wanted) : exists(wanted) ? wanted : undefined;
    if (file === undefined) {
      const where = bare ? 'is not on the PATH' : 'does not exist';
      return { message: `The setting ${setting} names ${wanted}, which ${where}.`, looked: [wanted] };
    }
    return { command: file, args: [...args], source: `the setting ${setting}` };
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
  const program = onPath('draftline');
  if (program !== undefined) {
    return { command: program, args: [], source: 'the PATH' };
  }
  const own = programIn(places.ownEnvironment, 'draftline', places.windows);
  looked.push(own);
  if (exists(own)) {
    return { command: own, args: [], source: "the extension's own environment" };
  }
  return { message: 'No Python environment with Draftline was found.', looked };
}
