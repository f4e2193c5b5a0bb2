import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';

import { makeEnvironment, type Wanted } from '../../src/environment';
import { incomplete, isMissing, locate, named, onPath } from '../../src/locate';
import { Cancelled } from '../../src/processes';
import { explain, SetUpError } from '../../src/setUpErrors';

const POSIX = { skip: process.platform === 'win32' ? 'the stand-ins are shell scripts' : false };

let home: string;
let bin: string;
let folder: string;
let heard: string[];
let steps: string[];

beforeEach(() => {
  home = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'draftline-set-up-')));
  bin = path.join(home, 'bin');
  fs.mkdirSync(bin);
  tools();
  folder = path.join(home, 'store', 'environment');
  heard = [];
  steps = [];
});

afterEach(() => fs.rmSync(home, { recursive: true, force: true }));

/** A program that notes how it was called and then does `body`. */
function program(file: string, body: string): string {
  const note = `echo "${path.basename(file)} $*" >>'${home}/calls'`;
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, `#!/bin/sh\n${note}\n${body}\n`, { mode: 0o755 });
  return file;
}

/** A uv that makes a folder and puts the program "draftline" into it. */
function fakeUv(venv = '', install = 'echo >"$F/bin/draftline"'): string {
  const make = 'mkdir -p "$F/bin"; echo half >"$F/bin/python"';
  return program(
    path.join(bin, 'uv'),
    `F='${folder}'; case "$1" in venv) ${make}; ${venv || ':'};; pip) echo "$UV_PYTHON_DOWNLOADS $PWD" >'${home}/seen'; ${install};; esac`,
  );
}

/** A Python whose module venv makes an environment with another one in it, whose pip installs "draftline". */
function fakePython(name = 'python3', version = '3.12', pip = `echo >'${path.join('$F', 'bin', 'draftline')}'`): void {
  const inner = `#!/bin/sh\\necho "inner $*" >>${home}/calls\\nF=${folder}\\n${pip.replaceAll("'", '')}\\n`;
  program(
    path.join(bin, name),
    `F='${folder}'; case "$3" in venv) mkdir -p "$F/bin"; printf '${inner.replaceAll('%', '%%')}' >"$F/bin/python"; chmod +x "$F/bin/python";; ` +
      `*) echo "Python ${version} /usr/bin/${name}";; esac`,
  );
}

function calls(): string[] {
  const file = path.join(home, 'calls');
  return fs.existsSync(file) ? fs.readFileSync(file, 'utf8').trim().split('\n') : [];
}

function make(wanted: Partial<Wanted> = {}): Promise<void> {
  return makeEnvironment({
    folder,
    source: '/clone',
    uv: undefined,
    // The tools of the shell scripts, and no other Python than the stand-in.
    env: { PATH: `${bin}:${path.join(home, 'tools')}`, HOME: home },
    windows: false,
    signal: new AbortController().signal,
    step: (what) => steps.push(what),
    hear: (line) => heard.push(line),
    ...wanted,
  });
}

/** Links to the few tools that the stand-ins call, since /usr/bin may have a Python. */
function tools(): void {
  fs.mkdirSync(path.join(home, 'tools'));
  for (const name of ['mkdir', 'chmod', 'sleep', 'printf']) {
    const found = onPath(name, { searchPath: '/bin:/usr/bin', windows: false }, fs.existsSync);
    if (found !== undefined) {
      fs.symlinkSync(found, path.join(home, 'tools', name));
    }
  }
}

async function problem(wanted: Partial<Wanted> = {}): Promise<SetUpError> {
  try {
    await make(wanted);
  } catch (error) {
    assert.ok(error instanceof SetUpError, String(error));
    return error;
  }
  throw new Error('an environment was made');
}

function leftovers(): string[] {
  const store = path.dirname(folder);
  return fs.existsSync(store) ? fs.readdirSync(store) : [];
}

test('uv makes the environment where there is one', POSIX, async () => {
  const uv = fakeUv();
  fakePython();
  await make({ uv });
  assert.deepEqual(calls(), [`uv venv --python >=3.10 ${folder}`, `uv pip install --python ${folder}/bin/python /clone`]);
  assert.equal(fs.readFileSync(path.join(home, 'seen'), 'utf8').trim(), `never ${os.homedir()}`);
  assert.deepEqual(steps, ['making the environment', 'installing']);
  assert.deepEqual(leftovers(), ['environment']);
  assert.ok(heard.includes(`${uv} venv --python >=3.10 ${folder}`));
});

test('without uv the venv and pip of a Python do', POSIX, async () => {
  fakePython();
  await make();
  assert.deepEqual(calls().slice(1), [
    `python3 -I -m venv ${folder}`,
    'inner -I -m pip install --disable-pip-version-check --no-input --progress-bar off /clone',
  ]);
  assert.deepEqual(leftovers(), ['environment']);
});

test('no Python, and one that is too old', POSIX, async () => {
  assert.match((await problem()).message, /^There is no Python on the PATH\. Install Python 3\.10 or newer with its module venv, or uv/);
  fakePython('python3', '3.8');
  assert.match((await problem()).message, /^Python is too old: 3\.8 \(\/usr\/bin\/python3\)\. Install/);
  fakePython('python3.11', '3.11');
  await make();
  assert.ok(calls().includes(`python3.11 -I -m venv ${folder}`));
});

test('what fails leaves nothing behind', POSIX, async () => {
  const uv = fakeUv('', 'echo "error: Failed to fetch: https://index/simple/torch/" >&2; exit 2');
  const error = await problem({ uv });
  assert.match(error.cause, /index cannot be reached/);
  assert.match(error.step, /HTTPS_PROXY.*use pip instead/);
  assert.ok(calls().some((call) => call.startsWith('uv pip')));
  assert.deepEqual(leftovers(), []);
});

test('what fails leaves an earlier environment as it was', POSIX, async () => {
  await make({ uv: fakeUv() });
  fs.writeFileSync(path.join(folder, 'mine'), 'here');
  await problem({ uv: fakeUv('', 'exit 1') });
  assert.equal(fs.readFileSync(path.join(folder, 'mine'), 'utf8'), 'here');
  await problem({ env: { PATH: path.join(home, 'tools') } });
  assert.equal(fs.readFileSync(path.join(folder, 'mine'), 'utf8'), 'here');
  await make({ uv: fakeUv() });
  assert.ok(!fs.existsSync(path.join(folder, 'mine')));
  assert.deepEqual(leftovers(), ['environment']);
});

test('a package without the program is told', POSIX, async () => {
  const error = await problem({ uv: fakeUv('', ':') });
  assert.match(error.message, /^\/clone was installed, but has no program "draftline"\. .*draftline\.installFrom/);
  assert.deepEqual(leftovers(), []);
});

test('cancelling ends all that was started and removes what was made', POSIX, async () => {
  const uv = fakeUv('', `sleep 600 & echo "child $!"; wait`);
  const controller = new AbortController();
  let child = 0;
  const made = make({
    uv,
    signal: controller.signal,
    hear: (line) => {
      const [, pid] = /^child (\d+)$/.exec(line) ?? [];
      if (pid !== undefined) {
        child = Number(pid);
        assert.ok(fs.existsSync(folder));
        controller.abort();
      }
    },
  });
  await assert.rejects(made, Cancelled);
  assert.deepEqual(leftovers(), []);
  assert.ok(child > 0);
  assert.ok(await ended(child), 'the child still runs');
});

/** A killed process stays as a zombie until somebody asks for its status. */
async function ended(pid: number): Promise<boolean> {
  for (let tries = 0; tries < 200; tries++) {
    try {
      process.kill(pid, 0);
    } catch {
      return true;
    }
    const status = `/proc/${pid}/status`;
    if (fs.existsSync(status) && /^State:\s+Z/m.test(fs.readFileSync(status, 'utf8'))) {
      return true;
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return false;
}

test('an unfinished environment is neither started nor kept', POSIX, async () => {
  const uv = fakeUv();
  await make({ uv });
  const places = { path: '', pythonPath: '', folders: [], searchPath: '', ownEnvironment: folder, home, windows: false };
  assert.ok(!isMissing(locate(places, fs.existsSync)));
  // Of a process that has ended: none has so high a number.
  fs.writeFileSync(incomplete(folder), '99999999');
  fs.writeFileSync(path.join(folder, 'half'), '');
  assert.ok(isMissing(locate(places, fs.existsSync)));
  await make({ uv });
  assert.ok(!fs.existsSync(path.join(folder, 'half')));
  assert.deepEqual(leftovers(), ['environment']);
});

test('uv is looked for on the PATH, or is what the setting names', () => {
  const places = { searchPath: '/a:/b', windows: false, home: '/home/me' };
  assert.equal(onPath('uv', places, (file) => file === '/b/uv'), '/b/uv');
  assert.equal(onPath('uv', places, () => false), undefined);
  assert.deepEqual(named('draftline.uvPath', '~/uv', places, (file) => file === '/home/me/uv'), { file: '/home/me/uv' });
  const none = named('draftline.uvPath', '/no/uv', places, () => false);
  assert.ok('message' in none);
  assert.equal(none.message, 'The setting draftline.uvPath names /no/uv, which does not exist.');
});

test('two attempts do not meet', POSIX, async () => {
  fs.mkdirSync(path.dirname(folder));
  fs.writeFileSync(incomplete(folder), String(process.ppid));
  assert.match((await problem({ uv: fakeUv() })).message, /being set up already\. .*environment\.incomplete/);
  assert.deepEqual(calls(), []);
  fs.rmSync(incomplete(folder));
  const both = await Promise.allSettled([make({ uv: fakeUv() }), make({ uv: fakeUv() })]);
  assert.deepEqual(both.map((one) => one.status).sort(), ['fulfilled', 'rejected']);
  assert.deepEqual(leftovers(), ['environment']);
});

// In the words of uv, pip, CPython's venv and node, shortened; some are taken from their output, others from memory.
const SAID: [string, string, RegExp][] = [
  ['uv', 'error: No interpreter found for Python >=3.10 in managed installations or search path', /found no Python 3\.10.*uv python install/],
  ['uv', 'error: Request failed after 3 retries\n  cause: Failed to fetch: https://x/\n  cause: dns error', /cannot be reached.*that uv is set up for.*pip instead/],
  ['pip', "WARNING: Retrying after connection broken by 'NewConnectionError(...)'\nERROR: No matching distribution found for torch", /cannot be reached.*that pip is set up for/],
  ['pip', 'SSLError(SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED]")) Max retries exceeded', /certificate.*SSL_CERT_FILE/],
  ['pip', 'ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device', /no space left on the disk: for \/store\/e.*about 3 GB/],
  ['uv', 'error: Failed to install\n  cause: failed to copy file from /a to /b: No space left on device (os error 28)', /no space left/],
  ['pip', "ERROR: Could not install packages due to an OSError: [Errno 13] Permission denied: '/x/y'", /not permitted: \/x\/y\..*writable.*\/store\/e/],
  ['uv', 'error: failed to create directory `/x/z`: Permission denied (os error 13)', /not permitted: \/x\/z\./],
  ['pip', "EROFS: read-only file system, mkdir '/x/store'", /not permitted: \/x\/store\./],
  ['pip', 'The virtual environment was not created successfully because ensurepip is not available.', /sudo apt install python3-venv/],
  ['pip', "ERROR: Directory '/empty' is not installable. Neither 'setup.py' nor 'pyproject.toml' found.", /^\/clone cannot be installed: Directory '\/empty'.*installFrom/],
  ['uv', 'error: Distribution not found at: file:///nosuch', /^\/clone cannot be installed: Distribution not found.*installFrom/],
  ['pip', 'ERROR: No matching distribution found for torch<2.14,>=2.6', /no torch<2\.14,>=2\.6 for this Python/],
  ['uv', 'error: No solution found when resolving dependencies', /no set of packages for this Python/],
  ['uv', 'Using Python\nerror: something new\n  cause: deep below', /^something new The log/],
  ['pip', '', /^pip failed and did not say why/],
];

test('each cause has its words and a next step', () => {
  for (const [tool, said, expected] of SAID) {
    const error = explain(said, { tool: tool as 'uv' | 'pip', folder: '/store/e', source: '/clone', free: undefined });
    assert.match(error.message, expected);
    assert.ok(error.step.length > 10);
  }
  const swallowed = "Error: Command '['/e/bin/python3', '-m', 'ensurepip']' returned non-zero exit status 1.";
  const told = { tool: 'pip' as const, folder: '/store/e', source: '/clone' };
  assert.match(explain(swallowed, { ...told, free: 4096 }).message, /no space left/);
  assert.match(explain(swallowed, { ...told, free: 5e9 }).message, /cannot make environments/);
});
