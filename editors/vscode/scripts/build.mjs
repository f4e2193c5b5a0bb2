// Bundles the extension; with --tests also the tests, for node and for the editor.
import { build } from 'esbuild';
import { readdirSync, rmSync } from 'node:fs';

const common = { bundle: true, platform: 'node', target: 'node20', format: 'cjs', external: ['vscode'], logLevel: 'warning' };
rmSync('out', { recursive: true, force: true });
await build({ ...common, entryPoints: ['src/extension.ts'], outfile: 'out/extension.js', minify: process.argv.includes('--minify') });
if (process.argv.includes('--tests')) {
  for (const kind of ['unit', 'host']) {
    const files = readdirSync(`test/${kind}`).map((name) => `test/${kind}/${name}`);
    await build({ ...common, entryPoints: files, outdir: `out/${kind}` });
  }
}
