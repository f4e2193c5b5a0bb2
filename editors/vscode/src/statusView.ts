/** What the status bar shows for what is known of the server. */

/** Parameters of the notification `draftline/status`. */
export interface StatusParams {
  state: 'starting' | 'loading' | 'ready' | 'failed' | 'stopped';
  message: string;
  reason: string;
  fraction?: number;
  nextStep?: string;
  uri?: string;
}

/** What the extension itself knows. */
export interface Knowledge {
  /** Undefined until the server has said something. */
  status?: StatusParams;
  /** Why there is no server: not found, or crashed; with the command that may help. */
  problem?: { message: string; action: string; title: string };
  /** Suggestions are switched off: everywhere, or for the language of the editor. */
  off?: 'everywhere' | 'language';
  /** The language of the active editor. */
  language?: string;
  /** A request has been running for a while. */
  busy: boolean;
}

export interface View {
  kind: 'loading' | 'ready' | 'busy' | 'off' | 'error' | 'stopped';
  text: string;
  tooltip: string;
  command: string;
  severity?: 'error' | 'warning';
}

/** Reasons that say nothing to a user who is typing. */
const QUIET = /^(cancelled|superseded|stale|empty|loading|disabled|filtered:.*)$/;

export function view(knowledge: Knowledge): View {
  const { status, problem, off, language, busy } = knowledge;
  if (problem !== undefined) {
    const tooltip = `${problem.message}\n\nClick: ${problem.title}`;
    return { kind: 'error', text: '$(error) Draftline', tooltip, command: problem.action, severity: 'error' };
  }
  if (off !== undefined) {
    const where = off === 'everywhere' ? '' : ` for ${language ?? 'this language'}`;
    const command = off === 'everywhere' ? 'draftline.toggle' : 'draftline.toggleLanguage';
    const tooltip = `Suggestions are switched off${where}.\n\nClick: switch them on`;
    return { kind: 'off', text: '$(circle-slash) Draftline', tooltip, command };
  }
  if (status?.state === 'failed') {
    const fetch = status.reason === 'model-not-fetched';
    const next = status.nextStep ? `\n\n${status.nextStep}` : '';
    const command = fetch ? 'draftline.fetchModel' : 'draftline.menu';
    const click = fetch ? 'fetch the model' : 'what can be done';
    const tooltip = `${status.message}${next}\n\nClick: ${click}`;
    return { kind: 'error', text: '$(error) Draftline', tooltip, command, severity: 'error' };
  }
  if (status?.state === 'stopped') {
    const tooltip = 'The engine is stopped.\n\nClick: start it';
    return { kind: 'stopped', text: '$(debug-stop) Draftline', tooltip, command: 'draftline.restart' };
  }
  if (status === undefined || status.state === 'starting' || status.state === 'loading') {
    const percent = status?.fraction === undefined ? '' : ` ${Math.floor(100 * status.fraction)} %`;
    const tooltip = status?.message || 'The server is starting.';
    return { kind: 'loading', text: `$(loading~spin) Draftline${percent}`, tooltip, command: 'draftline.menu' };
  }
  if (busy) {
    return { kind: 'busy', text: '$(loading~spin) Draftline', tooltip: 'Thinking', command: 'draftline.menu' };
  }
  const told = status.reason !== '' && !QUIET.test(status.reason);
  const tooltip = told ? `No suggestion here: ${status.message || status.reason}` : 'Ready';
  return { kind: 'ready', text: told ? '$(info) Draftline' : '$(sparkle) Draftline', tooltip, command: 'draftline.menu' };
}
