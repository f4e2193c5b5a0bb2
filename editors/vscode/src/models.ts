/** Choosing and fetching models, by the server's own commands. */

import { execFile } from 'node:child_process';
import * as os from 'node:os';
import { promisify } from 'node:util';

import * as vscode from 'vscode';

import { isMissing } from './locate';
import type { Server } from './server';

interface Model {
  name: string;
  description?: string;
  licence?: string;
  license?: string;
  bytes?: number;
  fetched?: boolean;
}

export async function selectModel(server: Server): Promise<void> {
  const found = server.installation();
  if (isMissing(found)) {
    void vscode.window.showErrorMessage(`Draftline: ${found.message}`);
    return;
  }
  const asked = promisify(execFile)(found.command, [...found.args, 'model', 'list', '--json'], { cwd: os.homedir() });
  const models = asked.then(({ stdout }) => JSON.parse(stdout) as Model[]);
  const current = vscode.workspace.getConfiguration('draftline').get('model', '');
  const other: vscode.QuickPickItem = { label: '$(file) Other…', description: 'a .gguf file, or a directory by its path' };
  const items = models.then((list) => [
    ...list.map((model) => ({
      label: model.name,
      description: [
        model.bytes === undefined ? '' : `${(model.bytes / 1e9).toFixed(1)} GB`,
        model.licence ?? model.license ?? '',
        model.name === current ? 'in use' : '',
      ]
        .filter((part) => part !== '')
        .join(', '),
      detail: model.description ?? '',
    })),
    other,
  ]);
  let chosen: vscode.QuickPickItem | undefined;
  try {
    chosen = await vscode.window.showQuickPick<vscode.QuickPickItem>(items, {
      title: 'Draftline: model',
      // The list takes a moment to come; a window or dialog that gets the focus meanwhile must not end it.
      ignoreFocusOut: true,
    });
  } catch (error) {
    void vscode.window.showErrorMessage(`Draftline: the models could not be listed: ${String(error)}`);
    return;
  }
  let name = chosen?.label;
  if (chosen?.label === other.label) {
    name = await vscode.window.showInputBox({ title: 'Draftline: model', prompt: 'Path of a .gguf file or a directory', value: current });
  }
  if (name !== undefined && name.trim() !== '') {
    await vscode.workspace.getConfiguration('draftline').update('model', name.trim(), vscode.ConfigurationTarget.Global);
  }
}

/** Fetches the model in a terminal, where its progress is seen, and starts the engine when it is there. */
export async function fetchModel(server: Server): Promise<void> {
  const found = server.installation();
  const name = vscode.workspace.getConfiguration('draftline').get('model', '');
  if (isMissing(found)) {
    void vscode.window.showErrorMessage(`Draftline: ${found.message}`);
    return;
  }
  const fetch = 'Download';
  const detail = 'Its size, licence and source are in the list of models. Nothing but the download uses the network.';
  const chosen = await vscode.window.showInformationMessage(`Download the model ${name}?`, { modal: true, detail }, fetch);
  if (chosen !== fetch) {
    return;
  }
  const shellArgs = [...found.args, 'model', 'fetch', name];
  const terminal = vscode.window.createTerminal({ name: 'Draftline: model', shellPath: found.command, shellArgs, cwd: os.homedir() });
  terminal.show();
  const listener = vscode.window.onDidCloseTerminal((closed) => {
    if (closed === terminal) {
      listener.dispose();
      if (closed.exitStatus?.code === 0) {
        void vscode.commands.executeCommand('draftline.restart');
      }
    }
  });
}
