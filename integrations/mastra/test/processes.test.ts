/** How many guard processes a program has, and that they end with it, however that ends. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { createOpenAI } from '@ai-sdk/openai';

import { createFaithfulnessScorer, Guardrail } from '../src/index.ts';
import { sharedGuardrail } from '../src/guardrail.ts';
import { CONTEXT, PROGRAM, QUESTION, RIGHT } from './program.ts';

const index = new URL('../src/index.ts', import.meta.url).href;
const guardrail = { command: [PROGRAM] };

/** The ids of the processes that `pid` started and that still run. */
async function childrenOf(pid: number): Promise<number[]> {
  const ids = (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).split(' ').filter(Boolean).map(Number);
  const running = await Promise.all(ids.map(runs));
  return ids.filter((_, at) => running[at]);
}

const runs = async (pid: number) => (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')) !== '';

/** A program that has an answer judged, and then does `last`. */
async function program(last: string, model = ''): Promise<{ pid: number; guard: number; ended: Promise<unknown> }> {
  const code = `
    import { createFaithfulnessScorer } from ${JSON.stringify(index)};
    const options = { context: ${JSON.stringify(CONTEXT)} };
    const scorer = createFaithfulnessScorer({ options, guardrail: ${JSON.stringify(guardrail)} ${model} });
    const result = scorer.run({ output: ${JSON.stringify(RIGHT)} });
    ${model === '' ? 'await result;' : 'await new Promise((resolve) => setTimeout(resolve, 4000));'}
    console.log('judged');
    process.stdin.once('data', () => { ${last} });`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', code], { stdio: ['pipe', 'pipe', 'ignore'] });
  const ended = once(child, 'exit');
  await once(child.stdout, 'data');
  const { pid = 0 } = child;
  const [guard = 0, ...others] = await childrenOf(pid);
  assert.deepEqual(others, []);
  assert.ok(await runs(guard));
  child.stdin.end('go on\n');
  return { pid, guard, ended };
}

async function isGone(pid: number): Promise<void> {
  while (await runs(pid)) await sleep(20);
}

describe('guard processes', { skip: process.platform !== 'linux' }, () => {
  it('are one for a thousand scorers, and for all who ask at once', async () => {
    const before = await childrenOf(process.pid);
    const scorers = Array.from({ length: 1_000 }, (_, at) =>
      createFaithfulnessScorer({ options: { context: CONTEXT, scale: at + 1 }, guardrail }),
    );
    const results = await Promise.all(scorers.slice(0, 40).map((scorer) => scorer.run({ output: RIGHT })));
    assert.deepEqual(
      results.map((each) => each.score),
      results.map((_, at) => at + 1),
    );
    assert.equal((await childrenOf(process.pid)).length, before.length + 1);
    assert.equal(process.listenerCount('exit'), new Set(process.listeners('exit')).size);
  });

  it('are started anew where one was killed', { timeout: 60_000 }, async () => {
    const [guard = 0] = await childrenOf(process.pid);
    process.kill(guard, 'SIGKILL');
    await isGone(guard);
    const result = await createFaithfulnessScorer({ options: { context: CONTEXT }, guardrail }).run({ output: RIGHT });
    assert.equal(result.score, 1);
  });

  for (const last of [
    'process.exit(3);',
    "Promise.reject(new Error('unhandled'));",
    "process.kill(process.pid, 'SIGINT');",
    "process.kill(process.pid, 'SIGKILL');",
    '',
  ]) {
    it(`end with a program that does: ${last || 'nothing more'}`, { timeout: 60_000 }, async () => {
      const { guard, ended } = await program(last);
      await ended;
      await isGone(guard);
    });
  }

  it('end with a program that is killed while its model thinks', { timeout: 60_000 }, async () => {
    const model = ", model: { specificationVersion: 'v2', provider: 'acme', modelId: 'slow', supportedUrls: {}, doGenerate: () => new Promise(() => {}), doStream: () => new Promise(() => {}) }";
    const { guard, ended } = await program("process.kill(process.pid, 'SIGKILL');", model);
    await ended;
    await isGone(guard);
  });
});

describe('a guard that is shared', () => {
  it('is the same for the same options, and another for others', () => {
    const model = { doGenerate: () => undefined } as never;
    for (const options of [{}, { config: 'a.yaml' }, { model: 'openai/gpt-4o' }, { model }] as const) {
      assert.equal(sharedGuardrail({ ...options }), sharedGuardrail({ ...options }));
      assert.notEqual(sharedGuardrail(options), sharedGuardrail({ ...options, policy: 'strict' }));
    }
    assert.notEqual(sharedGuardrail({ model }), sharedGuardrail({ model: { doGenerate: () => undefined } as never }));
    const ofOne = createOpenAI({ apiKey: 'a' });
    assert.equal(sharedGuardrail({ model: ofOne('gpt-4o') }), sharedGuardrail({ model: ofOne('gpt-4o') }));
    for (const other of [ofOne('gpt-4.1'), ofOne.chat('gpt-4o'), createOpenAI({ apiKey: 'b' })('gpt-4o')]) {
      assert.notEqual(sharedGuardrail({ model: ofOne('gpt-4o') }), sharedGuardrail({ model: other }));
    }
    const keyed = (apiKey: string) => sharedGuardrail({ model: { id: 'acme/judge', url: 'http://localhost/v1', apiKey } });
    assert.equal(keyed('a'), keyed('a'));
    assert.notEqual(keyed('a'), keyed('b'));
  });

  it('is not the one that a caller made and closes', async () => {
    await using own = new Guardrail(guardrail);
    const verdict = await own.check({ question: QUESTION, contexts: CONTEXT, answer: RIGHT });
    assert.equal(verdict.decision, 'release');
    await own.close();
    assert.equal((await own.check({ question: QUESTION, contexts: CONTEXT, answer: RIGHT })).decision, 'release');
  });
});
