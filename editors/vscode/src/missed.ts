/** Where a suggestion was asked for and the engine was not ready. The editor asks anew only when something is typed, so
 * it would stay without one. (After an answer to a request by hand it does not ask again at all for the same text.) */

import type * as vscode from 'vscode';

interface Place {
  readonly document: vscode.TextDocument;
  readonly version: number;
  readonly position: vscode.Position;
}

export class Missed {
  private place: Place | undefined;

  /** A request has been answered; `lost` if there is nothing only because the engine was not ready. */
  answered(place: Place, lost: boolean): void {
    this.place = lost ? place : undefined;
  }

  /** Whether the editor is still where the last answer was missed. Says so once. */
  take(editor: vscode.TextEditor | undefined): boolean {
    const { place } = this;
    this.place = undefined;
    return (
      place !== undefined &&
      editor !== undefined &&
      editor.document === place.document &&
      editor.document.version === place.version &&
      editor.selection.isEmpty &&
      editor.selection.active.isEqual(place.position)
    );
  }
}
