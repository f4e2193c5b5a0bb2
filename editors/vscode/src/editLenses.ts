/** Words and buttons above the lines of an edit that waits for the user's word. */

import * as vscode from 'vscode';

export class EditLenses implements vscode.CodeLensProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeCodeLenses = this.changed.event;
  private readonly registration = vscode.languages.registerCodeLensProvider({ pattern: '**' }, this);
  private shown: { document: vscode.TextDocument; line: number; words: string } | undefined;

  /** Whether the user sees lenses in this document. */
  static seen(document: vscode.TextDocument): boolean {
    return vscode.workspace.getConfiguration('editor', document).get('codeLens', true);
  }

  show(document: vscode.TextDocument, line: number, words: string): void {
    this.shown = { document, line, words };
    this.changed.fire();
  }

  clear(): void {
    if (this.shown !== undefined) {
      this.shown = undefined;
      this.changed.fire();
    }
  }

  provideCodeLenses(document: vscode.TextDocument): vscode.CodeLens[] {
    if (this.shown?.document !== document) {
      return [];
    }
    const { line, words } = this.shown;
    const range = new vscode.Range(line, 0, line, 0);
    const lens = (title: string, command: string, tooltip: string): vscode.CodeLens =>
      new vscode.CodeLens(range, { title, command: `draftline.${command}`, tooltip });
    return [
      lens('$(check) Accept', 'acceptEdit', 'Ctrl+Enter'),
      lens('$(close) Reject', 'rejectEdit', 'Escape'),
      lens(`$(diff) ${words}`, 'showEditDiff', 'Show the edit as a diff'),
    ];
  }

  dispose(): void {
    this.registration.dispose();
    this.changed.dispose();
  }
}
