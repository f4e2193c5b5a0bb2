/** Runs inside the extension host of a real editor; tests/editors/test_vscode.py starts it.
 *
 * The workspace has main.py and a plan in .draftline-test.json: which scenario, and where the result goes. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import * as fs from 'node:fs';
import * as path from 'node:path';

import * as vscode from 'vscode';

import type { Api } from '../../src/extension';

const PATIENCE_MS = 30_000;

async function until<T>(what: string, probe: () => T | Promise<T>): Promise<NonNullable<T>> {
  const end = Date.now() + PATIENCE_MS;
  let last: unknown;
  while (Date.now() < end) {
    try {
      const value = await probe();
      if (value) {
        return value;
      }
    } catch (error) {
      last = error;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`did not happen: ${what}${last === undefined ? '' : ` (${String(last)})`}`);
}

function set(key: string, value: unknown): Thenable<void> {
  return vscode.workspace.getConfiguration('draftline').update(key, value, vscode.ConfigurationTarget.Global);
}

async function open(folder: string): Promise<vscode.TextEditor> {
  const document = await vscode.workspace.openTextDocument(path.join(folder, 'main.py'));
  return vscode.window.showTextDocument(document);
}

/** Writes a line of its own below the second one and takes the suggestion at its end by the editor's own command. */
async function suggested(editor: vscode.TextEditor, begin: string, answer: string): Promise<void> {
  await editor.edit((edit) => edit.insert(new vscode.Position(2, 0), `${begin}\n`));
  const end = editor.document.lineAt(2).range.end;
  editor.selection = new vscode.Selection(end, end);
  await until(`the suggestion ${answer}`, async () => {
    await vscode.commands.executeCommand('draftline.trigger');
    await new Promise((resolve) => setTimeout(resolve, 500));
    await vscode.commands.executeCommand('editor.action.inlineSuggest.commit');
    return editor.document.lineAt(2).text === begin + answer;
  });
}

function programAsTerminal(command: string, args: string[], cwd: string): vscode.Pseudoterminal {
  const written = new vscode.EventEmitter<string>();
  const closed = new vscode.EventEmitter<number>();
  return {
    onDidWrite: written.event,
    onDidClose: closed.event,
    open: () => {
      const child = spawn(command, args, { cwd });
      child.stdout.on('data', (data: Buffer) => written.fire(data.toString()));
      child.on('close', (code) => closed.fire(code ?? 1));
    },
    close: () => undefined,
  };
}

interface Plan {
  scenario: string;
  result: string;
  program: string;
  /** The made-up engine loads until this file is there. */
  gate: string;
}

const SCENARIOS: Record<string, (api: Api, folder: string, plan: Plan) => Promise<void>> = {
  async session(api, folder, plan) {
    await until('ready', () => api.view().kind === 'ready');
    const editor = await open(folder);
    await until('the place of the cursor is read before a key', async () => {
      const { counts } = (await api.request('draftline/statistics')) as { counts: Record<string, number> };
      return counts['prefetches'] && !counts['requests'];
    });
    await suggested(editor, '    first = ', 'compute(s)');
    const report = (await api.request('draftline/statistics')) as { counts: Record<string, number> };
    assert.ok((report.counts['shown'] ?? 0) > 0, JSON.stringify(report));

    await vscode.commands.executeCommand('draftline.toggle');
    await until('off', () => api.view().kind === 'off' && api.view().command === 'draftline.toggle');
    await vscode.commands.executeCommand('draftline.toggle');
    await until('on', () => api.view().kind === 'ready');
    await vscode.commands.executeCommand('draftline.toggleLanguage');
    await until('off for Python', () => /for python/.test(api.view().tooltip));
    await vscode.commands.executeCommand('draftline.toggleLanguage');
    await until('on again', () => api.view().kind === 'ready');

    const first = await until('a process', () => api.pid());
    process.kill(first, 'SIGKILL');
    await until('the crash is told', () => api.view().kind === 'error' && /ended by SIGKILL/.test(api.view().tooltip));
    await until('another process', () => api.pid() !== undefined && api.pid() !== first && api.view().kind === 'ready');
    await suggested(editor, '    second = ', 'compute(s)');

    await set('path', '/no/such/draftline');
    await until('the setting is told', () => /names \/no\/such\/draftline, which does not exist/.test(api.view().tooltip));
    assert.equal(api.view().command, 'draftline.setUp');
    await set('path', plan.program);
    await until('ready again', () => api.view().kind === 'ready');
    const second = api.pid();
    await vscode.commands.executeCommand('draftline.restart');
    await until('restarted', () => api.view().kind === 'ready' && api.pid() !== second);
  },

  async grows(api, folder) {
    await until('ready', () => api.view().kind === 'ready');
    const editor = await open(folder);
    const last = editor.document.lineCount - 1;
    // An empty body gets a suggestion of several lines.
    await editor.edit((edit) => edit.insert(editor.document.lineAt(last).range.end, '\n\ndef other(s):'));
    const end = editor.document.lineAt(editor.document.lineCount - 1).range.end;
    editor.selection = new vscode.Selection(end, end);
    const shown = async (): Promise<boolean> => {
      const report = (await api.request('draftline/statistics')) as { counts: Record<string, number> };
      return (report.counts['shown'] ?? 0) > 0;
    };
    // The editor asks by itself only once it has been asked.
    await vscode.commands.executeCommand('draftline.trigger');
    await until('the first suggestion', shown);
    await vscode.commands.executeCommand('type', { text: '\n' });
    await until('extended', () => api.extended());
    await new Promise((resolve) => setTimeout(resolve, 500));
    await vscode.commands.executeCommand('editor.action.inlineSuggest.commit');
    await until('the whole suggestion', () => /^ {4}x = one\(s\)\r?\n {4}y = two\(s\)\r?\n {4}z = three\(s\)$/m.test(editor.document.getText()));
  },

  async late(api, folder, plan) {
    await until('loading', () => api.view().kind === 'loading' && api.request('draftline/statistics'));
    const editor = await open(folder);
    await editor.edit((edit) => edit.insert(new vscode.Position(2, 0), '    first =\n'));
    const end = editor.document.lineAt(2).range.end;
    editor.selection = new vscode.Selection(end, end);
    const inVain = async (): Promise<number> => {
      const { reasons } = (await api.request('draftline/statistics')) as { reasons: Record<string, number> };
      return reasons['loading'] ?? 0;
    };
    // The editor asks by itself only once it has been asked.
    const before = await until('it was asked for in vain', async () => {
      await vscode.commands.executeCommand('draftline.trigger');
      // Another one at once would take its place before it has asked.
      await new Promise((resolve) => setTimeout(resolve, 500));
      return inVain();
    });
    await vscode.commands.executeCommand('type', { text: ' ' });
    await until('the editor asked by itself', async () => (await inVain()) > before);
    assert.equal(api.view().kind, 'loading');
    fs.writeFileSync(plan.gate, '');
    await until('ready', () => api.view().kind === 'ready');
    await until('the suggestion, unasked', async () => {
      await vscode.commands.executeCommand('editor.action.inlineSuggest.commit');
      return editor.document.lineAt(2).text === '    first = compute(s)';
    });
  },

  async missing(api) {
    await until('told', () => api.view().kind === 'error');
    assert.match(api.view().tooltip, /No Python environment with Draftline was found/);
    assert.equal(api.view().command, 'draftline.setUp');
    assert.equal(api.pid(), undefined);
  },

  async failed(api) {
    await until('failed', () => api.view().kind === 'error');
    assert.equal(api.view().command, 'draftline.fetchModel');
    assert.match(api.view().tooltip, /is not on this disk/);
  },

  async download(api) {
    await until('the model is missing', () => api.view().command === 'draftline.fetchModel');
    const asked: string[] = [];
    const agree = async (message: string, _options: unknown, ...items: string[]): Promise<string | undefined> => {
      asked.push(message);
      return items.find((item) => item === 'Download');
    };
    // A test refuses dialogs, and this build of the editor may have no terminals of the system.
    Object.assign(vscode.window, { showInformationMessage: agree });
    const create = vscode.window.createTerminal;
    Object.assign(vscode.window, {
      createTerminal: ({ name, shellPath, shellArgs, cwd }: vscode.TerminalOptions) =>
        create({ name: name ?? '', pty: programAsTerminal(shellPath ?? '', [...(shellArgs ?? [])], String(cwd)) }),
    });
    await vscode.commands.executeCommand('draftline.fetchModel');
    assert.deepEqual(asked, ['Download the model qwen2.5-coder-0.5b-instruct?']);
    await until('ready', () => api.view().kind === 'ready');
  },

  async edit(api, folder) {
    await until('ready', () => api.view().kind === 'ready');
    const editor = await open(folder);
    const before = editor.document.getText();
    const edited = before.replace('s = s + p', 's += p');
    editor.selection = new vscode.Selection(0, 0, editor.document.lineCount - 1, 0);
    await vscode.commands.executeCommand('draftline.editSelection', 'Use an augmented assignment.');
    assert.ok(api.edits.waiting?.hunks.length);
    assert.equal(editor.document.getText(), before, 'nothing is applied unasked');
    await vscode.commands.executeCommand('draftline.rejectEdit');
    assert.equal(api.edits.waiting, undefined);
    await vscode.commands.executeCommand('draftline.editSelection', 'Use an augmented assignment.');
    assert.equal(await vscode.commands.executeCommand('draftline.acceptEdit'), true);
    assert.equal(editor.document.getText(), edited);
    await vscode.commands.executeCommand('undo');
    assert.equal(editor.document.getText(), before, 'one step undoes it');
  },
};

export async function run(): Promise<void> {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath;
  assert.ok(folder);
  const plan = JSON.parse(fs.readFileSync(path.join(folder, '.draftline-test.json'), 'utf8')) as Plan;
  let result = 'passed';
  let api: Api | undefined;
  try {
    const extension = vscode.extensions.getExtension<Api>('draftline.draftline');
    assert.ok(extension, 'the extension is not there');
    api = await extension.activate();
    const scenario = SCENARIOS[plan.scenario];
    assert.ok(scenario, plan.scenario);
    await scenario(api, folder, plan);
  } catch (error) {
    const text = vscode.window.activeTextEditor?.document.getText();
    result = `${error instanceof Error ? error.stack : String(error)}\nstatus: ${JSON.stringify(api?.view())}\ntext: ${text}`;
  }
  fs.writeFileSync(`${plan.result}.part`, result);
  fs.renameSync(`${plan.result}.part`, plan.result);
}
