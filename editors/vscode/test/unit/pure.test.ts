import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Backoff, describeExit } from '../../src/backoff';
import { applied, joined, marks } from '../../src/editHunks';
import { isMissing, locate, type Places } from '../../src/locate';
import { Missed } from '../../src/missed';
import { forServer, toggled } from '../../src/settings';
import { statisticsText } from '../../src/statisticsText';
import { type StatusParams, view } from '../../src/statusView';

const PLACES: Places = {
  path: '',
  pythonPath: '',
  folders: ['/work/one', '/work/two'],
  searchPath: '/usr/bin:/home/me/bin',
  ownEnvironment: '/store/environment',
  home: '/home/me',
  windows: false,
};

function command(places: Partial<Places>, ...files: string[]): string {
  const found = locate({ ...PLACES, ...places }, (file) => files.includes(file));
  return isMissing(found) ? `missing: ${found.message}` : [found.command, ...found.args].join(' ');
}

test('places are searched in order', () => {
  const all = ['/x/draftline', '/x/python', '/work/one/venv/bin/draftline', '/work/two/.venv/bin/draftline'];
  const rest = ['/home/me/bin/draftline', '/store/environment/bin/draftline'];
  assert.equal(command({ path: '/x/draftline', pythonPath: '/x/python' }, ...all, ...rest), '/x/draftline');
  assert.equal(command({ pythonPath: '/x/python' }, ...all, ...rest), '/x/python -m lsp_server');
  assert.equal(command({}, ...all, ...rest), '/work/one/venv/bin/draftline');
  assert.equal(command({ folders: [] }, ...all, ...rest), '/home/me/bin/draftline');
  assert.equal(command({}, '/store/environment/bin/draftline'), '/store/environment/bin/draftline');
});

test('a setting that names nothing is an error, whatever else there is', () => {
  assert.match(command({ path: '/no/draftline' }, '/work/one/.venv/bin/draftline'), /draftline\.path names \/no\/draftline, which does not exist/);
  assert.match(command({ pythonPath: 'python9' }), /pythonPath names python9, which is not on the PATH/);
  assert.equal(command({ pythonPath: 'python9' }, '/usr/bin/python9'), '/usr/bin/python9 -m lsp_server');
  assert.equal(command({ path: '~/draftline' }, '/home/me/draftline'), '/home/me/draftline');
});

test('what was looked at is told', () => {
  const found = locate(PLACES, () => false);
  assert.ok(isMissing(found));
  assert.deepEqual(found.looked.slice(-2), ['PATH', '/store/environment/bin/draftline']);
});

test('Windows has its own names', () => {
  const windows = { windows: true, folders: ['C:\\w'], searchPath: 'C:\\bin;C:\\other', ownEnvironment: 'C:\\own' };
  assert.equal(command(windows, 'C:\\w\\.venv\\Scripts\\draftline.exe'), 'C:\\w\\.venv\\Scripts\\draftline.exe');
  assert.equal(command(windows, 'C:\\other\\draftline.cmd'), 'C:\\other\\draftline.cmd');
});

test('crashes are waited after, longer each time, and then no more', () => {
  const backoff = new Backoff();
  const waits = [1, 2, 3, 4, 5, 6].map(() => backoff.crashed(10));
  assert.deepEqual(waits, [1000, 2000, 4000, 8000, 16000, undefined]);
  assert.equal(backoff.crashed(200_000), 1000, 'one that ran well has all its tries');
  backoff.crashed(0);
  backoff.reset();
  assert.equal(backoff.crashed(0), 1000);
});

test('the end of a process in words', () => {
  assert.equal(describeExit(1, null, 'a\nImportError: no torch\n\n'), 'The server ended with status 1: ImportError: no torch');
  assert.equal(describeExit(null, 'SIGKILL', ''), 'The server was ended by SIGKILL.');
});

test('the status bar', () => {
  const status = (params: Partial<StatusParams>): StatusParams => ({ state: 'ready', message: '', reason: '', ...params });
  assert.equal(view({ busy: false }).kind, 'loading');
  assert.equal(view({ busy: false, status: status({ state: 'loading', fraction: 0.256 }) }).text, '$(loading~spin) Draftline 25 %');
  assert.equal(view({ busy: false, status: status({}) }).kind, 'ready');
  assert.equal(view({ busy: true, status: status({}) }).kind, 'busy');
  assert.equal(view({ busy: true, off: 'everywhere', status: status({}) }).command, 'draftline.toggle');
  const language = view({ busy: false, off: 'language', language: 'go', status: status({}) });
  assert.equal(language.command, 'draftline.toggleLanguage');
  assert.match(language.tooltip, /for go/);
  const failed = view({ busy: false, status: status({ state: 'failed', reason: 'model-not-fetched', message: 'No model.', nextStep: 'Fetch it.' }) });
  assert.equal(failed.command, 'draftline.fetchModel');
  assert.match(failed.tooltip, /No model\.\n\nFetch it\./);
  assert.equal(failed.severity, 'error');
  const crashed = view({ busy: false, off: 'everywhere', problem: { message: 'It crashed.', action: 'draftline.menu', title: 'see' } });
  assert.equal(crashed.kind, 'error');
  assert.match(view({ busy: false, status: status({ reason: 'excluded', message: 'A secret.' }) }).tooltip, /A secret/);
  assert.equal(view({ busy: false, status: status({ reason: 'filtered:blank', message: 'x' }) }).tooltip, 'Ready');
});

test('hunks are drawn behind the lines they replace', () => {
  assert.deepEqual(marks([{ startLine: 1, endLine: 3, lines: ['a', 'b', 'c'] }], 9), [
    { line: 1, removed: true, added: 'a' },
    { line: 2, removed: true, added: 'b ⏎ c' },
  ]);
  assert.deepEqual(marks([{ startLine: 4, endLine: 4, lines: ['new'] }], 9), [{ line: 3, removed: false, added: 'new' }]);
  assert.deepEqual(marks([{ startLine: 0, endLine: 1, lines: [] }], 9), [{ line: 0, removed: true, added: '' }]);
  assert.deepEqual(marks([{ startLine: 0, endLine: 0, lines: ['top'] }], 1), [{ line: 0, removed: false, added: 'top' }]);
});

test('streamed hunks join, and the open one replaces nothing yet', () => {
  const hunk = { startLine: 0, endLine: 1, lines: ['x'] };
  const first = joined([], { hunks: [hunk], open: { startLine: 3, lines: ['y'] }, kept: 2, lines: 5 });
  assert.deepEqual(first.done, [hunk]);
  assert.deepEqual(first.shown[1], { startLine: 3, endLine: 3, lines: ['y'] });
  assert.deepEqual(joined(first.done, { hunks: [], open: null, kept: 5, lines: 5 }).shown, [hunk]);
  assert.deepEqual(applied(['a', 'b', 'c'], [hunk, { startLine: 3, endLine: 3, lines: ['d'] }]), ['x', 'b', 'c', 'd']);
});

test('the server gets its own settings only', () => {
  assert.deepEqual(forServer({ path: '/x', pythonPath: '', installFrom: '', uvPath: 'uv', maxLines: 3 }), { maxLines: 3 });
  assert.equal(forServer(null), null);
  assert.deepEqual(toggled(['go'], 'rust'), ['go', 'rust']);
  assert.deepEqual(toggled(['go', 'rust'], 'go'), ['rust']);
});

test('statistics as text', () => {
  const report = { counts: { shown: 4, acceptedWhole: 1 }, reasons: { empty: 2 }, sources: {}, latencyMs: { p50: 20, p95: null } };
  const text = statisticsText(report);
  assert.match(text, /of those shown: 25 %/);
  assert.match(text, /\| accepted whole \| 1 \|/);
  assert.match(text, /within 20 ms, 95 % within -/);
  assert.match(statisticsText({ ...report, counts: {} }), /nothing was shown yet/);
});

test('a suggestion that was missed is asked for where nothing has changed, once', () => {
  type Editor = NonNullable<Parameters<Missed['take']>[0]>;
  const position = (line: number): never => ({ line, isEqual: (other: { line: number }) => other.line === line }) as never;
  const document = { version: 7 } as never;
  const editor = (line: number, more: object = {}): Editor =>
    ({ document, selection: { active: position(line), isEmpty: true }, ...more }) as never;
  const missed = new Missed();
  const place = { document, version: 7, position: position(2) };
  assert.ok(!missed.take(editor(2)), 'nothing was asked');
  missed.answered(place, true);
  assert.ok(missed.take(editor(2)));
  assert.ok(!missed.take(editor(2)), 'once is enough');
  const selected = editor(2, { selection: { active: position(2), isEmpty: false } });
  for (const other of [undefined, editor(3), editor(2, { document: { version: 7 } }), selected]) {
    missed.answered(place, true);
    assert.ok(!missed.take(other));
  }
  missed.answered({ ...place, version: 6 }, true);
  assert.ok(!missed.take(editor(2)), 'something was typed since');
  missed.answered(place, true);
  missed.answered(place, false);
  assert.ok(!missed.take(editor(2)), 'a later answer was none of the loading');
});
