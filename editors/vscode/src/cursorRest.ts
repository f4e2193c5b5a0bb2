/** Tells the server where the cursor rests: VS Code asks for suggestions only when something was typed, and the
 * first key at a new place would wait until its surroundings are read. */

import * as vscode from 'vscode';

import type { Server } from './server';

const REST_MS = 300;

export class CursorRest implements vscode.Disposable {
  private timer: NodeJS.Timeout | undefined;
  /** The text that the cursor was last seen in; with another one it moved because something was typed. */
  private seen: { document: vscode.TextDocument; version: number } | undefined;
  private readonly subscriptions: vscode.Disposable[];

  constructor(private readonly server: Server) {
    this.subscriptions = [
      vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => this.moved(textEditor)),
      vscode.window.onDidChangeActiveTextEditor((editor) => editor !== undefined && this.moved(editor)),
    ];
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.subscriptions.forEach((subscription) => void subscription.dispose());
  }

  private moved(editor: vscode.TextEditor): void {
    clearTimeout(this.timer);
    const { document } = editor;
    const { version } = document;
    const typed = this.seen?.document === document && this.seen.version !== version;
    this.seen = { document, version };
    if (!typed) {
      this.timer = setTimeout(() => this.rests(editor, version), REST_MS);
    }
  }

  private rests(editor: vscode.TextEditor, version: number): void {
    const { document, selection, selections } = editor;
    const { client } = this.server;
    const there = editor === vscode.window.activeTextEditor && vscode.window.state.focused && document.version === version;
    if (!there || !selection.isEmpty || selections.length > 1 || client?.isRunning() !== true || !this.server.follows(document)) {
      return;
    }
    const { code2ProtocolConverter: converter } = client;
    const params = { textDocument: { uri: converter.asUri(document.uri) }, position: converter.asPosition(selection.active) };
    void client.sendNotification('draftline/cursor', params).catch(() => undefined); // the server is on its way out
  }
}
