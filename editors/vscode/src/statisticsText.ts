/** The answer to `draftline/statistics` as a page of Markdown. */

export interface Report {
  counts: Record<string, number>;
  reasons: Record<string, number>;
  sources: Record<string, number>;
  latencyMs: { p50: number | null; p95: number | null };
}

/** "acceptedWhole" becomes "accepted whole". */
function words(name: string): string {
  return name.replace(/([A-Z])/g, (letter) => ` ${letter.toLowerCase()}`);
}

function table(title: string, values: Record<string, number>): string[] {
  const rows = Object.entries(values);
  if (rows.length === 0) {
    return [];
  }
  return ['', `| ${title} | |`, '|---|---:|', ...rows.map(([name, count]) => `| ${name} | ${count} |`)];
}

export function statisticsText(report: Report): string {
  const { counts, latencyMs } = report;
  const shown = counts['shown'] ?? 0;
  const taken = (counts['acceptedWhole'] ?? 0) + (counts['acceptedLine'] ?? 0) + (counts['acceptedWord'] ?? 0);
  const share = shown > 0 ? `${Math.round((100 * taken) / shown)} %` : 'nothing was shown yet';
  const time = (ms: number | null): string => (ms === null ? '-' : `${ms} ms`);
  return [
    '# Draftline on this machine',
    '',
    'Counts only, kept on this machine and sent nowhere. The setting `draftline.statistics` stops them.',
    '',
    `Accepted, wholly or in part, of those shown: ${share}.`,
    `Time to a suggestion: half of them within ${time(latencyMs.p50)}, 95 % within ${time(latencyMs.p95)}.`,
    ...table('counts', Object.fromEntries(Object.entries(counts).map(([name, count]) => [words(name), count]))),
    ...table('suggestions by who made them', report.sources),
    ...table('requests without a suggestion', report.reasons),
    '',
  ].join('\n');
}
