// Drives a page of VS Code by commands in JSON lines on stdin; vscode_page.py starts it.
// node vscode_page.mjs EXTENSION CHROMIUM WIDTH HEIGHT FLAG…
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

const [extension, executablePath, width, height, ...args] = process.argv.slice(2);
const { chromium } = createRequire(`${extension}/package.json`)('playwright-core');
const browser = await chromium.launch({ executablePath, args });
const page = await (await browser.newContext({ viewport: { width: Number(width), height: Number(height) } })).newPage();

const commands = {
  open: async ({ url }) => void (await page.goto(url)),
  click: ({ selector }) => page.click(selector),
  press: async ({ keys }) => {
    for (const key of keys) {
      await page.keyboard.press(key);
    }
  },
  // Keys with seconds to wait behind each: one that is late does not delay those behind it.
  type: async ({ keys, waits }) => {
    let due = performance.now();
    for (const [index, key] of keys.entries()) {
      await sleep(Math.max(0, due - performance.now()));
      await (key.length > 1 ? page.keyboard.press(key) : page.keyboard.type(key));
      due += 1000 * waits[index];
    }
  },
  evaluate: ({ script, value }) => page.evaluate(`(${script})(${JSON.stringify(value ?? null)})`),
  until: async ({ script, value, seconds }) =>
    (await page.waitForFunction(`(${script})(${JSON.stringify(value ?? null)})`, undefined, { timeout: 1000 * seconds })).jsonValue(),
  screenshot: async ({ path }) => void (await page.screenshot({ path })),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { command, ...parameters } = JSON.parse(line);
  let answer;
  try {
    answer = { value: (await commands[command](parameters)) ?? null };
  } catch (error) {
    answer = { error: String(error?.message ?? error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
await browser.close();
