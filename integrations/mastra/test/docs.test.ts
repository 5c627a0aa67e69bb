/** Runs the TypeScript of docs/mastra.md, each block as a program of its own. */

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { it } from 'node:test';
import { promisify } from 'node:util';

import { PROGRAM } from './program.ts';

const page = await readFile(new URL('../../../docs/mastra.md', import.meta.url), 'utf8');
const blocks = [...page.matchAll(/^```typescript\n(.*?)^```/gms)].map(([, code]) => code ?? '');
const index = new URL('../src/index.ts', import.meta.url).href;

async function run(code: string): Promise<string> {
  const folder = await mkdtemp(join(import.meta.dirname, 'docs-')); // in here, so that the packages are found
  try {
    const file = join(folder, 'block.ts');
    await writeFile(file, code.replaceAll("'@streaming-guardrail/mastra'", `'${index}'`));
    const path = `${dirname(PROGRAM)}${delimiter}${process.env['PATH']}`;
    const env = { ...process.env, PATH: path, MASTRA_TELEMETRY_DISABLED: '1' };
    return (await promisify(execFile)(process.execPath, [file], { timeout: 60_000, env })).stdout;
  } finally {
    await rm(folder, { recursive: true });
  }
}

it('docs/mastra.md has the blocks that are run here', () => assert.equal(blocks.length, 3));

for (const [at, code] of blocks.entries()) {
  it(`block ${at} of docs/mastra.md runs`, async () => {
    const printed = await run(code);
    if (at === 1) assert.match(printed, /^0 The score is 0 because the documents support 0 of 1 claims\./);
  });
}
