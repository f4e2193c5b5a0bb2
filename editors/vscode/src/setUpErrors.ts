/** Why an environment could not be made, and what to do about it, from what the tools said. */

/** One sentence for the cause, one or two for the next step. */
export class SetUpError extends Error {
  constructor(
    readonly cause: string,
    readonly step: string,
  ) {
    super(`${cause} ${step}`);
  }
}

export interface Circumstances {
  tool: 'uv' | 'pip';
  /** Where the environment was to be. */
  folder: string;
  /** What was to be installed. */
  source: string;
  /** Bytes that are free there, undefined if that is not known. */
  free: number | undefined;
}

/** With less the disk counts as full, whatever was said: venv does not pass on why it failed. */
const NOTHING_LEFT = 20e6;

const FULL = /no space left|not enough space|disk quota|disk full|enospc|os error (28|112|122)\b/i;
const DENIED = /permission denied|operation not permitted|access is denied|read-only file system|\b(eacces|eperm|erofs)\b/i;
const NO_VENV = /ensurepip|no module named '?venv|python3[.\d]*-venv/i;
const CERTIFICATE = /certificate_verify_failed|certificate verify failed|invalid peer certificate|unknownissuer/i;
const NETWORK = new RegExp(
  'error sending request|failed to fetch|dns error|failed to lookup address|tcp connect error|connection refused|network is unreachable|' +
    'name resolution|name or service not known|getaddrinfo|newconnectionerror|failed to establish a new connection|max retries exceeded|' +
    'connecttimeout|readtimeout|timed out|proxyerror|connection ?reset|connection aborted|network was disabled',
  'i',
);
const NO_SOURCE = /distribution not found at|not installable|does not appear to be a python project|invalid requirement|failed to parse|does not exist/i;
const NOTHING_FITS = /no solution found|no matching distribution found for (\S+)/i;
const NO_PYTHON = /no interpreter found/i;

/** The error for what a tool said before it gave up. */
export function explain(output: string, { tool, folder, source, free }: Circumstances): SetUpError {
  if (FULL.test(output) || (free !== undefined && free < NOTHING_LEFT)) {
    return new SetUpError(
      `There is no space left on the disk: for ${folder}, for temporary files or for the cache of ${tool}.`,
      'Draftline takes about 3 GB, more with the CUDA build of PyTorch. Make room and try again.',
    );
  }
  if (DENIED.test(output)) {
    const where = /['"`]([^'"`\n]*[\\/][^'"`\n]*)['"`]/.exec(line(output, DENIED))?.[1];
    return new SetUpError(`Writing is not permitted: ${where ?? line(output, DENIED)}.`, `Make it writable, like all of ${folder}, and try again.`);
  }
  if (NO_PYTHON.test(output)) {
    return new SetUpError(
      'uv found no Python 3.10 or newer.',
      'Install it, for example by "uv python install 3.12", which downloads it, and try again.',
    );
  }
  if (NO_VENV.test(output)) {
    return new SetUpError(
      'This Python cannot make environments with pip in them.',
      'Install its module venv (Debian and Ubuntu: "sudo apt install python3-venv") or uv, and try again.',
    );
  }
  if (CERTIFICATE.test(output)) {
    return new SetUpError(
      `The certificate of the package index is not trusted by ${tool}.`,
      'If a proxy replaces it, name its certificate in the variable SSL_CERT_FILE, start the editor anew and try again.',
    );
  }
  if (NETWORK.test(output)) {
    const other = tool === 'uv' ? ' uv does not read the configuration of pip: if only that names your index, use pip instead.' : '';
    return new SetUpError(
      'The package index cannot be reached.',
      `Check the network, the proxy (HTTPS_PROXY) and the index that ${tool} is set up for, and try again.${other}`,
    );
  }
  if (NO_SOURCE.test(output)) {
    return new SetUpError(
      `${source} cannot be installed: ${last(output)}`,
      'Name a clone of the repository of Draftline in the setting draftline.installFrom, and try again.',
    );
  }
  const fits = NOTHING_FITS.exec(output);
  if (fits !== null) {
    return new SetUpError(
      `The package index has no ${fits[1] ?? 'set of packages'} for this Python and this machine.`,
      'The log says what is missing. Try another version of Python, or another index.',
    );
  }
  return new SetUpError(last(output) || `${tool} failed and did not say why.`, 'The log has all it said.');
}

function line(output: string, pattern: RegExp): string {
  return (output.split(/\r?\n/).find((text) => pattern.test(text)) ?? '').trim().replace(/\.$/, '');
}

/** The tool's own summary: the last line that is marked as an error, else the last one. */
function last(output: string): string {
  const lines = output.split(/\r?\n/).map((text) => text.trim());
  const spoken = lines.filter((text) => text !== '');
  return (spoken.reverse().find((text) => /^error\b/i.test(text)) ?? spoken[0] ?? '').replace(/^error:\s*/i, '');
}
