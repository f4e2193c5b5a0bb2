/** Makes a Python environment with Draftline in it, after the user has agreed. */

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';

import * as vscode from 'vscode';

import { makeEnvironment } from './environment';
import { isMissing, named, onPath } from './locate';
import { Cancelled } from './processes';
import { ownEnvironment, type Server } from './server';

/** Longer lines of the tools are cut in the notification. */
const SHOWN = 70;

/** What runs now. */
const attempts = new Map<AbortController, Promise<unknown>>();

/** Ends what runs, and waits until it has cleaned up. */
export async function abandonSetUp(): Promise<void> {
  const running = [...attempts.values()];
  for (const controller of attempts.keys()) {
    controller.abort();
  }
  await Promise.allSettled(running);
}

/** Whether there is another installation now, so that the server is to be started anew. */
export async function setUp(context: vscode.ExtensionContext, log: vscode.LogOutputChannel, server: Server): Promise<boolean> {
  const found = findUv();
  if (typeof found === 'object') {
    const open = 'Open Settings';
    if ((await vscode.window.showErrorMessage(`Draftline: ${found.message} Correct it or leave it empty.`, open)) === open) {
      await vscode.commands.executeCommand('workbench.action.openSettings', 'draftline.uvPath');
    }
    return false;
  }
  const [make, choose] = ['Make an Environment', 'Choose a Program…'];
  const detail = consent(ownEnvironment(context), found, server);
  const chosen = await vscode.window.showInformationMessage('Set up Draftline', { modal: true, detail }, make, choose);
  if (chosen === choose) {
    const [file] = (await vscode.window.showOpenDialog({ title: 'The program "draftline"', canSelectMany: false })) ?? [];
    if (file !== undefined) {
      await vscode.workspace.getConfiguration('draftline').update('path', file.fsPath, vscode.ConfigurationTarget.Global);
    }
    return file !== undefined;
  }
  const source = chosen === make ? await packageFolder() : undefined;
  if (source === undefined) {
    return false;
  }
  return attempt(context, log, server, source, found);
}

/** What the user agrees to, in words. */
function consent(folder: string, uv: string | undefined, server: Server): string {
  const detail = [
    `Draftline is a Python package. The extension can make an environment of its own for it, in ${folder}, and install it there with ` +
      `${uv ?? 'pip'}: about 3 GB of disk, most of it PyTorch, and some more GB where PyTorch comes with CUDA, as it does on Linux if ` +
      `nothing else is set up. It comes from the package index that your ${uv === undefined ? 'pip' : 'uv'} is set up for.`,
    'Or choose the program "draftline" of an environment that has it.',
  ];
  const settings = namingSettings().map(({ key, value }) => `draftline.${key} (${value})`);
  const now = server.installation();
  if (settings.length > 0) {
    detail.push(`A setting comes before the new environment, and is removed when that is ready: ${settings.join(', ')}.`);
  } else if (!isMissing(now) && !now.command.startsWith(folder)) {
    detail.push(`Draftline was found already, by ${now.source}, and will be used from there: ${now.command}.`);
  }
  return detail.join('\n\n');
}

/** Makes the environment, again and by other means as often as the user wants. */
async function attempt(
  context: vscode.ExtensionContext,
  log: vscode.LogOutputChannel,
  server: Server,
  source: string,
  uv: string | undefined,
): Promise<boolean> {
  const [again, pip, open] = ['Try Again', 'Use pip Instead', 'Open Log'];
  for (let tool = uv; ; ) {
    const installation = server.installation();
    const replaced = !isMissing(installation) && installation.command.startsWith(ownEnvironment(context));
    if (replaced) {
      // Its files are about to go.
      await server.stop();
    }
    const problem = await withProgress(context, log, source, tool);
    if (problem === undefined) {
      await removeSettings();
      return true;
    }
    if (replaced) {
      void server.restart();
    }
    if (problem instanceof Cancelled) {
      return false;
    }
    log.error(problem.message);
    const message = `Draftline could not be set up. ${problem.message}`;
    const answer = await vscode.window.showErrorMessage(message, again, ...(tool === undefined ? [] : [pip]), open);
    if (answer === pip) {
      tool = undefined;
    } else if (answer !== again) {
      if (answer === open) {
        log.show();
      }
      return false;
    }
  }
}

/** Makes the environment; why it could not be made. */
async function withProgress(
  context: vscode.ExtensionContext,
  log: vscode.LogOutputChannel,
  source: string,
  uv: string | undefined,
): Promise<Error | undefined> {
  const options = { location: vscode.ProgressLocation.Notification, title: 'Draftline', cancellable: true };
  return vscode.window.withProgress(options, async (progress, token) => {
    const controller = new AbortController();
    token.onCancellationRequested(() => controller.abort());
    let step = '';
    const made = makeEnvironment({
      folder: ownEnvironment(context),
      source,
      uv,
      env: process.env,
      windows: process.platform === 'win32',
      signal: controller.signal,
      step: (what) => {
        step = what;
        progress.report({ message: step });
      },
      hear: (line) => {
        log.info(line);
        if (/^warning\b/i.test(line)) {
          return;
        }
        progress.report({ message: `${step}: ${line.trim().slice(0, SHOWN)}` });
      },
    });
    attempts.set(controller, made);
    try {
      await made;
      return undefined;
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    } finally {
      attempts.delete(controller);
    }
  });
}

/** The program uv, undefined if there is none; what is wrong with the setting that names it. */
function findUv(): string | undefined | { message: string } {
  const exists = (file: string): boolean => fs.statSync(file, { throwIfNoEntry: false })?.isFile() ?? false;
  const places = { searchPath: process.env['PATH'] ?? '', windows: process.platform === 'win32', home: os.homedir() };
  const value = vscode.workspace.getConfiguration('draftline').get('uvPath', '').trim();
  if (value === '') {
    const found = onPath('uv', places, exists);
    // A script of Windows' shell would read the ">" in an argument as its own.
    return found !== undefined && /\.(cmd|bat)$/i.test(found) ? undefined : found;
  }
  const found = named('draftline.uvPath', value, places, exists);
  return 'file' in found ? found.file : found;
}

/** Settings that name another installation, and where they are set. */
function namingSettings(): { key: string; value: string; target: vscode.ConfigurationTarget }[] {
  const settings = vscode.workspace.getConfiguration('draftline');
  return ['path', 'pythonPath'].flatMap((key) => {
    const found = settings.inspect<string>(key);
    return [
      { value: found?.globalValue, target: vscode.ConfigurationTarget.Global },
      { value: found?.workspaceValue, target: vscode.ConfigurationTarget.Workspace },
    ].flatMap(({ value, target }) => (value === undefined || value.trim() === '' ? [] : [{ key, value, target }]));
  });
}

async function removeSettings(): Promise<void> {
  for (const { key, target } of namingSettings()) {
    await vscode.workspace.getConfiguration('draftline').update(key, undefined, target);
  }
}

/** What is installed: a setting, a workspace folder that is Draftline, or one that the user names. */
async function packageFolder(): Promise<string | undefined> {
  const set = vscode.workspace.getConfiguration('draftline').get('installFrom', '').trim();
  if (set !== '') {
    return set;
  }
  const local = (vscode.workspace.workspaceFolders ?? []).filter((folder) => folder.uri.scheme === 'file');
  const folders = local.map((folder) => folder.uri.fsPath);
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
