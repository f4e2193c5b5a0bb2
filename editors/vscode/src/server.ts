/** The server's process and the client that talks to it: started, watched, started again. */

import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';

import * as vscode from 'vscode';
import { CloseAction, ErrorAction, LanguageClient, type LanguageClientOptions } from 'vscode-languageclient/node';

import { Backoff, describeExit } from './backoff';
import { type Installation, isMissing, locate, type Missing } from './locate';
import { Missed } from './missed';
import { forServer } from './settings';
import type { Knowledge, StatusParams } from './statusView';

const SELECTOR = [{ scheme: 'file' }, { scheme: 'untitled' }, { scheme: 'vscode-notebook-cell' }];
/** A request is worth showing only when it takes longer. */
const BUSY_MS = 400;
const STOP_MS = 5000;
const KEPT_STDERR = 4000;

/** A suggestion of which the first lines were shown has become longer. */
interface Grown {
  readonly uri: string;
  readonly version: number;
}

export class Server implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onChange = this.changed.event;
  status: StatusParams | undefined;
  problem: Knowledge['problem'];
  busy = false;
  client: LanguageClient | undefined;
  private process: ChildProcessWithoutNullStreams | undefined;
  private readonly backoff = new Backoff();
  private timer: NodeJS.Timeout | undefined;
  /** Suggestions that were extended; for tests. */
  extended = 0;
  private readonly missed = new Missed();
  /** A request that comes now is not the user's. */
  private unasked = false;
  private running = 0;
  private starting = false;
  /** Which start is meant; whatever belongs to an earlier one is ignored. */
  private generation = 0;
  private queue: Promise<void> = Promise.resolve();

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly log: vscode.LogOutputChannel,
  ) {}

  get pid(): number | undefined {
    return this.process?.exitCode === null ? this.process.pid : undefined;
  }

  /** The installation that would be started now. */
  installation(): Installation | Missing {
    const settings = vscode.workspace.getConfiguration('draftline');
    const folders = (vscode.workspace.workspaceFolders ?? []).filter((folder) => folder.uri.scheme === 'file');
    return locate(
      {
        path: settings.get('path', ''),
        pythonPath: settings.get('pythonPath', ''),
        folders: vscode.workspace.isTrusted ? folders.map((folder) => folder.uri.fsPath) : [],
        searchPath: process.env['PATH'] ?? '',
        ownEnvironment: ownEnvironment(this.context),
        home: os.homedir(),
        windows: process.platform === 'win32',
      },
      (file) => fs.statSync(file, { throwIfNoEntry: false })?.isFile() ?? false,
    );
  }

  /** Starts the server, or another in its place; the tries after crashes begin anew. */
  restart(): Promise<void> {
    this.backoff.reset();
    this.abandon();
    return this.enqueue(() => this.start());
  }

  stop(): Promise<void> {
    this.abandon();
    return this.enqueue(() => this.end());
  }

  dispose(): void {
    void this.stop();
    this.changed.dispose();
  }

  /** A server that never answers `initialize` must not be waited for. */
  private abandon(): void {
    if (this.starting) {
      this.generation++;
      this.process?.kill();
    }
  }

  private enqueue(work: () => Promise<void>): Promise<void> {
    this.queue = this.queue.then(work).catch((error: unknown) => {
      this.log.error(String(error));
    });
    return this.queue;
  }

  private async end(): Promise<void> {
    this.generation++;
    clearTimeout(this.timer);
    const { client, process } = this;
    this.client = undefined;
    this.process = undefined;
    this.status = undefined;
    this.problem = undefined;
    this.busy = false;
    this.running = 0;
    try {
      await client?.dispose(STOP_MS);
    } catch (error) {
      this.log.debug(`The client did not stop in order: ${String(error)}`);
    }
    if (process?.exitCode === null && process.signalCode === null) {
      process.kill();
    }
    this.changed.fire();
  }

  private async start(): Promise<void> {
    await this.end();
    const generation = this.generation;
    const found = this.installation();
    if (isMissing(found)) {
      this.log.error(`${found.message} Looked at: ${found.looked.join(', ')}`);
      this.fail(found.message, 'draftline.setUp', 'set Draftline up');
      return;
    }
    this.log.info(`Starting ${[found.command, ...found.args, 'lsp'].join(' ')}, found by ${found.source}.`);
    const began = Date.now();
    let stderr = '';
    const launch = async (): Promise<ChildProcessWithoutNullStreams> => {
      const args = [...found.args, 'lsp'];
      // A workspace's own modules must not stand in for those of Draftline, as they would from its folder.
      const child = spawn(found.command, args, {
        cwd: os.homedir(),
        env: { ...process.env, PYTHONUNBUFFERED: '1' },
        shell: /\.(cmd|bat)$/i.test(found.command),
        windowsHide: true,
      });
      this.process = child;
      child.stderr.setEncoding('utf8');
      child.stderr.on('data', (text: string) => {
        stderr = (stderr + text).slice(-KEPT_STDERR);
      });
      child.on('error', (error) => {
        stderr += `\n${error.message}`;
      });
      child.on('close', (code, signal) => {
        if (generation === this.generation) {
          this.crashed(describeExit(code, signal, stderr), Date.now() - began);
        }
      });
      return child;
    };
    const client = new LanguageClient('draftline', 'Draftline', launch, this.options());
    this.client = client;
    client.onNotification('draftline/status', (params: StatusParams) => {
      if (generation === this.generation) {
        const became = params.state === 'ready' && this.status?.state !== 'ready';
        this.status = params;
        this.changed.fire();
        if (became) {
          this.askAgain().catch((error: unknown) => this.log.debug(String(error)));
        }
      }
    });
    client.onNotification('draftline/grown', (params: Grown) => {
      if (generation === this.generation) {
        void this.extend(params);
      }
    });
    this.changed.fire();
    this.starting = true;
    try {
      await client.start();
    } catch (error) {
      // The process' end says more, and comes by itself.
      this.log.error(`The server did not start: ${String(error)}`);
      if (generation === this.generation && this.pid !== undefined) {
        this.process?.kill();
      }
    } finally {
      this.starting = false;
    }
  }

  private crashed(why: string, ranMs: number): void {
    this.generation++;
    const { client } = this;
    this.client = undefined;
    this.process = undefined;
    this.status = undefined;
    this.busy = false;
    this.running = 0;
    // Takes the provider of suggestions and the server's commands out of the editor.
    void client?.dispose(0).catch(() => undefined);
    const wait = this.backoff.crashed(ranMs);
    this.log.error(why);
    if (wait === undefined) {
      this.fail(`${why} It has crashed several times and is not started again.`, 'draftline.menu', 'what can be done');
      const [restart, log] = ['Restart', 'Open Log'];
      void vscode.window.showErrorMessage(`Draftline: ${why}`, restart, log).then((chosen) => {
        if (chosen !== undefined) {
          void vscode.commands.executeCommand(chosen === restart ? 'draftline.restart' : 'draftline.openLog');
        }
      });
      return;
    }
    this.log.info(`Starting the server again in ${wait / 1000} s.`);
    this.fail(`${why} It is started again in ${wait / 1000} s.`, 'draftline.menu', 'what can be done');
    this.timer = setTimeout(() => void this.enqueue(() => this.start()), wait);
  }

  private fail(message: string, action: string, title: string): void {
    this.problem = { message, action, title };
    this.changed.fire();
  }

  private options(): LanguageClientOptions {
    return {
      documentSelector: SELECTOR,
      outputChannel: this.log,
      initializationOptions: { client: 'vscode' },
      progressOnInitialization: false,
      // Crashes are handled here, with the process' own last words.
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue, handled: true }),
        closed: () => ({ action: CloseAction.DoNotRestart, handled: true }),
      },
      initializationFailedHandler: () => false,
      middleware: {
        provideInlineCompletionItems: async (document, position, context, token, next) => {
          // Asked by itself, it gets what is there, not other candidates.
          const triggerKind = this.unasked ? vscode.InlineCompletionTriggerKind.Automatic : context.triggerKind;
          const { version } = document;
          const answer = await this.watch(Promise.resolve(next(document, position, { ...context, triggerKind }, token)));
          if (!token.isCancellationRequested) {
            const items = Array.isArray(answer) ? answer : (answer?.items ?? []);
            this.missed.answered({ document, version, position }, items.length === 0 && this.status?.state !== 'ready');
          }
          return answer;
        },
        workspace: {
          configuration: async (params, token, next) => {
            const values = await next(params, token);
            return Array.isArray(values) ? values.map(forServer) : values;
          },
        },
      },
    };
  }

  /** Whether the server has the document. */
  follows(document: vscode.TextDocument): boolean {
    return vscode.languages.match(SELECTOR, document) > 0;
  }

  /** Puts the whole suggestion in the place of its first lines, if they are still on the screen. */
  private async extend({ uri, version }: Grown): Promise<void> {
    const document = vscode.window.activeTextEditor?.document;
    if (document === undefined || document.version !== version || this.client?.code2ProtocolConverter.asUri(document.uri) !== uri) {
      return;
    }
    // Runs only while a suggestion is visible, so one that was dismissed stays away.
    await this.ask('showNext');
    this.extended++;
  }

  /** The model is ready: where a suggestion was asked for in vain, and nothing has changed since, it comes now. */
  private async askAgain(): Promise<void> {
    if (this.missed.take(vscode.window.activeTextEditor) && vscode.window.state.focused) {
      await this.ask('trigger');
    }
  }

  /** Has the editor ask for suggestions, by one of its own commands. */
  private async ask(command: string): Promise<void> {
    this.unasked = true;
    try {
      await vscode.commands.executeCommand(`editor.action.inlineSuggest.${command}`);
    } finally {
      this.unasked = false;
    }
  }

  /** Shows that a request is running once it takes a while. */
  private async watch<T>(request: Promise<T>): Promise<T> {
    const { generation } = this;
    this.running++;
    const timer = setTimeout(() => this.setBusy(true), BUSY_MS);
    try {
      return await request;
    } finally {
      clearTimeout(timer);
      if (generation === this.generation && --this.running <= 0) {
        this.setBusy(false);
      }
    }
  }

  private setBusy(busy: boolean): void {
    if (this.busy !== busy) {
      this.busy = busy;
      this.changed.fire();
    }
  }
}

/** The environment that the extension makes if the user wants it to. */
export function ownEnvironment(context: vscode.ExtensionContext): string {
  return path.join(context.globalStorageUri.fsPath, 'environment');
}
