/** Makes a Python environment with Draftline in it, after the user has agreed. */

import { spawn } from 'node:child_process';
import * as fs from 'node:fs';
import * as path from 'node:path';

import * as vscode from 'vscode';

import { programIn } from './locate';
import { ownEnvironment } from './server';

const LOWEST = 'import sys; sys.exit(sys.version_info < (3, 10))';

class Stopped extends Error {}

/** Whether an environment was made. */
export async function setUp(context: vscode.ExtensionContext, log: vscode.LogOutputChannel): Promise<boolean> {
  const [make, choose] = ['Make an Environment', 'Choose a Program…'];
  const detail =
    'Draftline is a Python package. The extension can make an environment of its own for it and install it there: ' +
    'about 3 GB of disk, most of it PyTorch, from the package index that your pip is set up for. ' +
    'Or choose the program "draftline" of an environment that has it.';
  const chosen = await vscode.window.showInformationMessage('Set up Draftline', { modal: true, detail }, make, choose);
  if (chosen === choose) {
    const [file] = (await vscode.window.showOpenDialog({ title: 'The program "draftline"', canSelectMany: false })) ?? [];
    if (file !== undefined) {
      await vscode.workspace.getConfiguration('draftline').update('path', file.fsPath, vscode.ConfigurationTarget.Global);
    }
    return file !== undefined;
  }
  if (chosen !== make) {
    return false;
  }
  const source = await packageFolder();
  if (source === undefined) {
    return false;
  }
  const options = { location: vscode.ProgressLocation.Notification, title: 'Draftline', cancellable: true };
  try {
    await vscode.window.withProgress(options, async (progress, token) => {
      const environment = ownEnvironment(context);
      const windows = process.platform === 'win32';
      progress.report({ message: 'looking for Python 3.10 or newer' });
      const python = await findPython(log, token);
      progress.report({ message: 'making the environment' });
      await fs.promises.mkdir(path.dirname(environment), { recursive: true });
      await run(python, ['-m', 'venv', '--clear', environment], log, token);
      progress.report({ message: 'installing, which takes some minutes; the log shows how far it is' });
      const pip = ['-m', 'pip', 'install', '--disable-pip-version-check', '--no-input', source];
      await run(programIn(environment, 'python', windows), pip, log, token);
    });
    return true;
  } catch (error) {
    if (!(error instanceof Stopped)) {
      const open = 'Open Log';
      const why = error instanceof Error ? error.message : String(error);
      void vscode.window.showErrorMessage(`Draftline could not be set up: ${why}`, open).then((answer) => {
        if (answer === open) {
          log.show();
        }
      });
    }
    return false;
  }
}

/** The folder that pip installs: a setting, a workspace folder that is Draftline, or one that the user names. */
async function packageFolder(): Promise<string | undefined> {
  const set = vscode.workspace.getConfiguration('draftline').get('installFrom', '').trim();
  if (set !== '') {
    return set;
  }
  const folders = (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath);
  const here = vscode.workspace.isTrusted ? folders.find(isDraftline) : undefined;
  if (here !== undefined) {
    return here;
  }
  const title = 'The folder of Draftline (a clone of its repository)';
  const [folder] = (await vscode.window.showOpenDialog({ title, canSelectFolders: true, canSelectFiles: false })) ?? [];
  if (folder !== undefined && !isDraftline(folder.fsPath)) {
    void vscode.window.showErrorMessage(`Draftline: ${folder.fsPath} has no pyproject.toml of Draftline.`);
    return undefined;
  }
  return folder?.fsPath;
}

function isDraftline(folder: string): boolean {
  try {
    return /^name = "draftline"$/m.test(fs.readFileSync(path.join(folder, 'pyproject.toml'), 'utf8'));
  } catch {
    return false;
  }
}

async function findPython(log: vscode.LogOutputChannel, token: vscode.CancellationToken): Promise<string> {
  for (const name of process.platform === 'win32' ? ['py', 'python'] : ['python3', 'python']) {
    try {
      await run(name, ['-c', LOWEST], log, token);
      return name;
    } catch (error) {
      if (error instanceof Stopped) {
        throw error;
      }
    }
  }
  throw new Error('there is no Python 3.10 or newer on the PATH. Install it, with its venv module, and try again.');
}

function run(command: string, args: string[], log: vscode.LogOutputChannel, token: vscode.CancellationToken): Promise<void> {
  log.info([command, ...args].join(' '));
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { windowsHide: true });
    let last = '';
    const hear = (data: Buffer): void => {
      for (const line of data.toString().split(/\r?\n/).filter((text) => text.trim() !== '')) {
        log.info(line);
        last = line;
      }
    };
    child.stdout.on('data', hear);
    child.stderr.on('data', hear);
    child.on('error', reject);
    const listener = token.onCancellationRequested(() => child.kill());
    child.on('close', (code) => {
      listener.dispose();
      if (token.isCancellationRequested) {
        reject(new Stopped());
      } else if (code === 0) {
        resolve();
      } else {
        reject(new Error(last === '' ? `${command} ended with status ${code}` : last));
      }
    });
  });
}
