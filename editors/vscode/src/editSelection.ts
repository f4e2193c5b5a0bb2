/** The command that edits a selection: instruction, streamed preview, accept or reject. */

import * as vscode from 'vscode';
import { type LanguageClient, ProgressType } from 'vscode-languageclient/node';

import { applied, type EditAnswer, type Hunk, joined, marks, type Progress } from './editHunks';
import { EditLenses } from './editLenses';
import type { Server } from './server';

const PENDING = 'draftline.editPending';
export const PREVIEW_SCHEME = 'draftline-edit';

interface Pending {
  editor: vscode.TextEditor;
  version: number;
  answer: EditAnswer;
  client: LanguageClient;
}

export class EditSelection implements vscode.Disposable, vscode.TextDocumentContentProvider {
  private readonly removed = vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    backgroundColor: new vscode.ThemeColor('diffEditor.removedLineBackground'),
    overviewRulerColor: new vscode.ThemeColor('diffEditorOverview.removedForeground'),
  });
  private readonly added = vscode.window.createTextEditorDecorationType({
    after: {
      color: new vscode.ThemeColor('editorGhostText.foreground'),
      backgroundColor: new vscode.ThemeColor('diffEditor.insertedTextBackground'),
      margin: '0 0 0 2ch',
    },
  });
  private readonly lenses = new EditLenses();
  private pending: Pending | undefined;
  private asking: vscode.CancellationTokenSource | undefined;
  private previewText = '';
  private tokens = 0;
  private readonly disposables: vscode.Disposable[];

  constructor(
    private readonly server: Server,
    private readonly log: vscode.LogOutputChannel,
  ) {
    this.disposables = [
      this.removed,
      this.added,
      this.lenses,
      vscode.workspace.registerTextDocumentContentProvider(PREVIEW_SCHEME, this),
      vscode.workspace.onDidChangeTextDocument((event) => {
        if (event.contentChanges.length > 0 && event.document === this.pending?.editor.document) {
          this.clear();
        }
      }),
      vscode.workspace.onDidCloseTextDocument((document) => {
        if (document === this.pending?.editor.document) {
          this.clear();
        }
      }),
    ];
  }

  /** The answer that waits for the user's word. */
  get waiting(): EditAnswer | undefined {
    return this.pending?.answer;
  }

  provideTextDocumentContent(): string {
    return this.previewText;
  }

  /** Asks for the instruction unless it is given, then for the edit. */
  async run(given?: string): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const { client } = this.server;
    if (editor === undefined || client === undefined) {
      void vscode.window.showInformationMessage(
        editor === undefined ? 'Draftline: open a file and select the code to edit.' : 'Draftline: the server is not running.',
      );
      return;
    }
    this.clear();
    const { document, selection } = editor;
    const range = wholeLines(document, selection);
    const where = {
      textDocument: { uri: client.code2ProtocolConverter.asUri(document.uri), version: document.version },
      range: client.code2ProtocolConverter.asRange(range),
    };
    // Reads the prompt while the user types; a server that cannot do this says so, which does not matter.
    client.sendRequest('draftline/inlineEdit/warmUp', where).catch((error: unknown) => this.log.debug(String(error)));
    const instruction =
      given ?? (await vscode.window.showInputBox({ title: 'Draftline: edit the selection', prompt: 'What is to be changed?' }));
    if (instruction === undefined || instruction.trim() === '') {
      return;
    }
    const { version } = where.textDocument;
    const answer = await this.ask(client, editor, { ...where, instruction });
    if (answer === undefined) {
      this.clear();
      return;
    }
    if (answer.edit === null || document.version !== version) {
      this.clear();
      const stale = 'The document changed meanwhile; ask again.';
      void vscode.window.showWarningMessage(`Draftline: ${answer.edit === null ? answer.message : stale}`);
      return;
    }
    this.pending = { editor, version, answer, client };
    this.draw(editor, answer.hunks);
    await vscode.commands.executeCommand('setContext', PENDING, true);
    if (EditLenses.seen(document)) {
      this.lenses.show(document, answer.hunks[0]?.startLine ?? range.start.line, words(answer));
    } else if (given === undefined) {
      void this.offer(answer);
    }
  }

  /** Applies the edit that is shown, as one step to undo. A doubtful one is asked about, unless `sure`. */
  async accept(sure = false): Promise<boolean> {
    const { pending } = this;
    if (pending === undefined) {
      return false;
    }
    const { answer, editor, version, client } = pending;
    if (answer.flags.length > 0 && !sure) {
      const anyway = 'Apply Anyway';
      const detail = { modal: true, detail: answer.message };
      if ((await vscode.window.showWarningMessage('This edit is doubtful.', detail, anyway)) !== anyway) {
        return false;
      }
    }
    const edit = await client.protocol2CodeConverter.asWorkspaceEdit(answer.edit as never);
    const current = this.pending === pending && editor.document.version === version;
    this.clear();
    if (edit === undefined || !current || !(await vscode.workspace.applyEdit(edit))) {
      void vscode.window.showWarningMessage('Draftline: the document changed meanwhile; ask again.');
      return false;
    }
    return true;
  }

  /** Takes the preview away, or stops what is being written. */
  reject(): void {
    this.asking?.cancel();
    this.clear();
  }

  dispose(): void {
    this.reject();
    for (const disposable of this.disposables) {
      disposable.dispose();
    }
  }

  private async ask(client: LanguageClient, editor: vscode.TextEditor, params: object): Promise<EditAnswer | undefined> {
    const partialResultToken = `draftline-edit-${++this.tokens}`;
    let done: Hunk[] = [];
    const listener = client.onProgress(new ProgressType<Progress>(), partialResultToken, (progress) => {
      const both = joined(done, progress);
      done = both.done;
      this.draw(editor, both.shown);
    });
    const source = new vscode.CancellationTokenSource();
    this.asking = source;
    const title = { location: vscode.ProgressLocation.Notification, title: 'Draftline: editing', cancellable: true };
    try {
      return await vscode.window.withProgress(title, (_, token) => {
        token.onCancellationRequested(() => source.cancel());
        return client.sendRequest<EditAnswer>('draftline/inlineEdit', { ...params, partialResultToken }, source.token);
      });
    } catch (error) {
      if (!source.token.isCancellationRequested) {
        this.log.error(String(error));
        void vscode.window.showErrorMessage(`Draftline: ${error instanceof Error ? error.message : String(error)}`);
      }
      return undefined;
    } finally {
      listener.dispose();
      source.dispose();
      this.asking = undefined;
    }
  }

  private async offer(answer: EditAnswer): Promise<void> {
    const [accept, diff, reject] = ['Accept', 'Show Diff', 'Reject'];
    const show = answer.flags.length > 0 ? vscode.window.showWarningMessage : vscode.window.showInformationMessage;
    const chosen = await show(`Draftline: ${words(answer)}`, accept, diff, reject);
    if (this.pending?.answer !== answer) {
      return;
    }
    if (chosen === accept) {
      await this.accept();
    } else if (chosen === diff) {
      await this.showDiff();
      void this.offer(answer);
    } else if (chosen === reject) {
      this.reject();
    }
  }

  /** Opens the file and what it would be beside each other. */
  async showDiff(): Promise<void> {
    const { pending } = this;
    if (pending === undefined) {
      return;
    }
    const { document } = pending.editor;
    this.previewText = applied(document.getText().split(/\r?\n/), pending.answer.hunks).join('\n');
    const uri = vscode.Uri.from({ scheme: PREVIEW_SCHEME, path: document.uri.path, query: String(++this.tokens) });
    await vscode.commands.executeCommand('vscode.diff', document.uri, uri, 'Draftline: edit');
  }

  private draw(editor: vscode.TextEditor, hunks: Hunk[]): void {
    const { document } = editor;
    const all = marks(hunks, document.lineCount);
    editor.setDecorations(
      this.removed,
      all.filter((mark) => mark.removed).map((mark) => document.lineAt(mark.line).range),
    );
    editor.setDecorations(
      this.added,
      all
        .filter((mark) => mark.added !== '')
        .map((mark) => {
          const { end } = document.lineAt(mark.line).range;
          return { range: new vscode.Range(end, end), renderOptions: { after: { contentText: mark.added } } };
        }),
    );
  }

  private clear(): void {
    const editors = new Set([...vscode.window.visibleTextEditors, ...(this.pending ? [this.pending.editor] : [])]);
    for (const editor of editors) {
      editor.setDecorations(this.removed, []);
      editor.setDecorations(this.added, []);
    }
    this.pending = undefined;
    this.lenses.clear();
    void vscode.commands.executeCommand('setContext', PENDING, false);
  }
}

function words(answer: EditAnswer): string {
  return answer.flags.length > 0 ? `${answer.summary} Doubtful: ${answer.message}.` : answer.summary;
}

/** The lines that a selection touches; one that ends at the begin of a line does not touch that line. */
function wholeLines(document: vscode.TextDocument, selection: vscode.Selection): vscode.Range {
  const { start, end } = selection;
  const last = end.character === 0 && end.line > start.line ? end.line - 1 : end.line;
  return new vscode.Range(start.line, 0, last, document.lineAt(last).range.end.character);
}
