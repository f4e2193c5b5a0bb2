/** Streamed hunks of an inline edit, and what is drawn for them; see lsp_server/inline_edit/wire.py. */

/** Whole lines `startLine` to `endLine` (exclusive) are replaced by `lines`. */
export interface Hunk {
  startLine: number;
  endLine: number;
  lines: string[];
}

/** A value of `$/progress`. */
export interface Progress {
  hunks: Hunk[];
  open: { startLine: number; lines: string[] } | null;
  kept: number;
  lines: number;
}

export interface EditAnswer {
  edit: unknown;
  summary: string;
  flags: string[];
  reason: string;
  message: string;
  hunks: Hunk[];
}

/** What one line of the document shows. */
export interface LineMark {
  line: number;
  /** The line goes away. */
  removed: boolean;
  /** New text that is drawn behind the line, "" for none. */
  added: string;
}

const LONGEST = 160;
const LINE_END = ' ⏎ ';

/** Joins what came so far with one more value. */
export function joined(before: Hunk[], progress: Progress): { done: Hunk[]; shown: Hunk[] } {
  const done = [...before, ...progress.hunks];
  const { open } = progress;
  // What has begun replaces nothing yet: which lines go is known when it ends.
  const shown = open === null ? done : [...done, { startLine: open.startLine, endLine: open.startLine, lines: open.lines }];
  return { done, shown };
}

/**
 * Marks for lines of the document. An editor cannot draw lines between lines, so new ones stand behind the
 * old ones they replace, the rest behind the last of them; text that only comes in, behind the line above.
 */
export function marks(hunks: Hunk[], lineCount: number): LineMark[] {
  const found = new Map<number, LineMark>();
  const at = (line: number): LineMark => {
    const place = Math.max(0, Math.min(line, lineCount - 1));
    const mark = found.get(place) ?? { line: place, removed: false, added: '' };
    found.set(place, mark);
    return mark;
  };
  const add = (mark: LineMark, lines: string[]): void => {
    const text = [mark.added, ...lines.map((line) => line.trimEnd())].filter((part, index) => index > 0 || part !== '').join(LINE_END);
    mark.added = text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
  };
  for (const hunk of hunks) {
    const removed = hunk.endLine - hunk.startLine;
    for (let line = hunk.startLine; line < hunk.endLine; line++) {
      at(line).removed = true;
    }
    if (removed === 0) {
      if (hunk.lines.length > 0) {
        add(at(hunk.startLine - 1), hunk.lines);
      }
      continue;
    }
    for (let index = 0; index < Math.min(removed, hunk.lines.length); index++) {
      const last = index === removed - 1;
      add(at(hunk.startLine + index), last ? hunk.lines.slice(index) : [hunk.lines[index] ?? '']);
    }
  }
  return [...found.values()].sort((one, other) => one.line - other.line);
}

/** The document after the hunks, which do not overlap and come in its order. */
export function applied(lines: string[], hunks: Hunk[]): string[] {
  const result = [...lines];
  for (const hunk of [...hunks].reverse()) {
    result.splice(hunk.startLine, hunk.endLine - hunk.startLine, ...hunk.lines);
  }
  return result;
}
