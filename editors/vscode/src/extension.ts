/** Draftline for VS Code: what the extension brings into the editor. */

import * as vscode from 'vscode';

import { CursorRest } from './cursorRest';
import { EditSelection } from './editSelection';
import { fetchModel, selectModel } from './models';
import { Server } from './server';
import { toggled } from './settings';
import { abandonSetUp, setUp } from './setUp';
import { type Report, statisticsText } from './statisticsText';
import { type Knowledge, view, type View } from './statusView';

const STATISTICS_SCHEME = 'draftline-statistics';

/** What the tests in the editor look at. */
export interface Api {
  readonly view: () => View;
  readonly pid: () => number | undefined;
  readonly request: (method: string, params?: unknown) => Promise<unknown>;
  readonly edits: EditSelection;
  readonly extended: () => number;
}

export function activate(context: vscode.ExtensionContext): Api {
  const log = vscode.window.createOutputChannel('Draftline', { log: true });
  const server = new Server(context, log);
  const edits = new EditSelection(server, log);
  const item = vscode.window.createStatusBarItem('draftline', vscode.StatusBarAlignment.Right, 100);
  item.name = 'Draftline';

  const current = (): View => view({ ...known(server), ...off() });
  const show = (): void => {
    const { text, tooltip, command, severity } = current();
    item.text = text;
    item.tooltip = tooltip;
    item.command = command;
    item.backgroundColor = severity && new vscode.ThemeColor(`statusBarItem.${severity}Background`);
    item.show();
  };

  const command = (name: string, run: (...args: never[]) => unknown): vscode.Disposable =>
    vscode.commands.registerCommand(`draftline.${name}`, run);
  const editor = (name: string) => (): Thenable<unknown> => vscode.commands.executeCommand(`editor.action.inlineSuggest.${name}`);

  context.subscriptions.push(
    log,
    server,
    edits,
    new CursorRest(server),
    item,
    server.onChange(show),
    vscode.window.onDidChangeActiveTextEditor(show),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration('draftline.path') || event.affectsConfiguration('draftline.pythonPath')) {
        void server.restart();
      }
      show();
    }),
    vscode.workspace.onDidGrantWorkspaceTrust(() => void server.restart()),
    vscode.workspace.registerTextDocumentContentProvider(STATISTICS_SCHEME, {
      provideTextDocumentContent: async () => statisticsText(await ask<Report>(server, 'draftline/statistics')),
    }),
    command('toggle', toggle),
    command('toggleLanguage', toggleLanguage),
    command('trigger', trigger),
    command('acceptWord', editor('acceptNextWord')),
    command('acceptLine', editor('acceptNextLine')),
    // A menu passes the document's address.
    command('editSelection', async (given?: unknown) => {
      await textEditor();
      await edits.run(typeof given === 'string' ? given : undefined);
    }),
    command('acceptEdit', () => edits.accept()),
    command('rejectEdit', () => edits.reject()),
    command('showEditDiff', () => edits.showDiff()),
    command('selectModel', () => selectModel(server)),
    command('fetchModel', () => fetchModel(server)),
    command('showStatistics', showStatistics),
    command('restart', () => server.restart()),
    command('openLog', () => log.show()),
    command('openSettings', () => vscode.commands.executeCommand('workbench.action.openSettings', '@ext:draftline.draftline')),
    command('setUp', async () => {
      if (await setUp(context, log, server)) {
        await server.restart();
      }
    }),
    command('menu', () => menu(current())),
  );
  show();
  void server.restart().then(() => {
    if (server.problem?.action === 'draftline.setUp') {
      void offerSetUp(server.problem.message);
    }
  });
  return { view: current, pid: () => server.pid, request: (method, params) => ask(server, method, params), edits, extended: () => server.extended };
}

/** The editor waits a few seconds for it. */
export function deactivate(): Promise<void> {
  return abandonSetUp();
}

function known(server: Server): Knowledge {
  const { status, problem, busy } = server;
  return { busy, ...(status && { status }), ...(problem && { problem }) };
}

function off(): Partial<Knowledge> {
  const document = vscode.window.activeTextEditor?.document;
  const settings = vscode.workspace.getConfiguration('draftline', document?.uri ?? null);
  if (!settings.get('enable', true)) {
    return { off: 'everywhere' };
  }
  const language = document?.languageId;
  if (language !== undefined && settings.get<string[]>('disabledLanguages', []).includes(language)) {
    return { off: 'language', language };
  }
  return {};
}

async function ask<T>(server: Server, method: string, params?: unknown): Promise<T> {
  if (server.client === undefined) {
    throw new Error('Draftline: the server is not running.');
  }
  return params === undefined ? server.client.sendRequest<T>(method) : server.client.sendRequest<T>(method, params);
}

/** The editor of the user's text. From the walkthrough it is the one beside it, which then gets the focus. */
async function textEditor(): Promise<vscode.TextEditor | undefined> {
  const beside = vscode.window.visibleTextEditors.find((editor) => editor.viewColumn !== undefined);
  if (vscode.window.activeTextEditor !== undefined || beside?.viewColumn === undefined) {
    return vscode.window.activeTextEditor;
  }
  return vscode.window.showTextDocument(beside.document, { viewColumn: beside.viewColumn, selection: beside.selection });
}

async function trigger(): Promise<void> {
  if ((await textEditor()) === undefined) {
    void vscode.window.showInformationMessage('Draftline: open a file and put the cursor where you want a suggestion.');
    return;
  }
  await vscode.commands.executeCommand('editor.action.inlineSuggest.trigger');
}

/** Where a setting is changed: where it is set already, else for the user. */
function target(key: string): vscode.ConfigurationTarget {
  const found = vscode.workspace.getConfiguration('draftline').inspect(key);
  return found?.workspaceValue === undefined ? vscode.ConfigurationTarget.Global : vscode.ConfigurationTarget.Workspace;
}

async function toggle(): Promise<void> {
  const settings = vscode.workspace.getConfiguration('draftline');
  await settings.update('enable', !settings.get('enable', true), target('enable'));
}

async function toggleLanguage(): Promise<void> {
  const language = vscode.window.activeTextEditor?.document.languageId;
  if (language === undefined) {
    void vscode.window.showInformationMessage('Draftline: open a file of the language.');
    return;
  }
  const settings = vscode.workspace.getConfiguration('draftline');
  const names = settings.get<string[]>('disabledLanguages', []);
  await settings.update('disabledLanguages', toggled(names, language), target('disabledLanguages'));
}

async function showStatistics(): Promise<void> {
  // Another address each time: the editor keeps what it has for an old one.
  const uri = vscode.Uri.from({ scheme: STATISTICS_SCHEME, path: 'Draftline statistics.md', query: String(Date.now()) });
  await vscode.commands.executeCommand('markdown.showPreview', uri);
}

async function offerSetUp(message: string): Promise<void> {
  const [set, log] = ['Set Up…', 'Open Log'];
  const chosen = await vscode.window.showErrorMessage(`Draftline: ${message}`, set, log);
  if (chosen !== undefined) {
    await vscode.commands.executeCommand(chosen === set ? 'draftline.setUp' : 'draftline.openLog');
  }
}

async function menu(now: View): Promise<void> {
  const switched = now.kind === 'off' ? 'Switch suggestions on' : 'Switch suggestions off';
  const entries: [string, string][] = [
    [switched, now.kind === 'off' ? now.command : 'draftline.toggle'],
    ['Switch this language on or off', 'draftline.toggleLanguage'],
    ['Select the model…', 'draftline.selectModel'],
    ['Show statistics', 'draftline.showStatistics'],
    ['Restart the server', 'draftline.restart'],
    ['Open the log', 'draftline.openLog'],
    ['Open the settings', 'draftline.openSettings'],
  ];
  const items = entries.map(([label, command]) => ({ label, command }));
  const chosen = await vscode.window.showQuickPick(items, { title: 'Draftline', placeHolder: now.tooltip.split('\n')[0] ?? '' });
  if (chosen !== undefined) {
    await vscode.commands.executeCommand(chosen.command);
  }
}
