/** Models as Mastra spells them, in the place of the guard's own judge. */

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { after, describe, it } from 'node:test';
import { promisify } from 'node:util';

import { createOpenAI } from '@ai-sdk/openai';
import type { MastraModelConfig } from '@mastra/core/llm';
import { createAgentTestRun, createTestMessage } from '@mastra/evals/scorers/utils';
import { MockLanguageModelV3 } from 'ai/test';

import { createFaithfulnessScorer, type FaithfulnessScorerConfig, Guardrail } from '../src/index.ts';
import { serve } from '../src/model.ts';
import { KEY, replyTo, scriptedJudge } from './judge.ts';
import { CONTEXT, PROGRAM, QUESTION, RIGHT } from './program.ts';

process.env['MASTRA_TELEMETRY_DISABLED'] = '1';

// A verdict that the local judge would not give shows who was asked.
const SCRIPT = { [RIGHT]: [[RIGHT, 'contradicted']] } as const;
const judge = await scriptedJudge(SCRIPT);
after(() => judge.close());
const guardrail = { command: [PROGRAM] };

const scoreWith = (config: FaithfulnessScorerConfig) =>
  createFaithfulnessScorer({ options: { context: CONTEXT }, guardrail, ...config }).run(
    createAgentTestRun({
      inputMessages: [createTestMessage({ content: QUESTION, role: 'user', id: 'u' })],
      output: [createTestMessage({ content: RIGHT, role: 'assistant', id: 'a' })],
    }),
  );

const texts = (parts: readonly object[]) => parts.map((part) => ('text' in part ? part.text : '')).join('');

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 1, text: 1, reasoning: undefined },
};

describe('the model that is given judges', () => {
  it('as an id with its URL and key', async () => {
    const { score, analyzeStepResult } = await scoreWith({ model: { id: 'acme/judge', url: judge.url, apiKey: KEY } });
    assert.equal(score, 0);
    assert.deepEqual(
      analyzeStepResult?.verdicts.map((each) => [each.verdict, each.guardrail.judge]),
      [['no', 'llm:judge']],
    );
    const { model, messages } = judge.calls.at(-1) ?? assert.fail();
    assert.equal(model, 'judge');
    assert.deepEqual(
      messages.map((each) => each.role),
      ['system', 'user'],
    );
  });

  it('as an object of the AI SDK', async () => {
    const model = new MockLanguageModelV3({
      doGenerate: async ({ prompt }) => ({
        content: [{ type: 'text', text: replyTo(JSON.stringify(prompt).replaceAll('\\n', '\n'), SCRIPT) }],
        finishReason: { unified: 'stop', raw: 'stop' },
        usage,
        warnings: [],
      }),
    });
    const { score } = await scoreWith({ model: model as unknown as MastraModelConfig });
    assert.equal(score, 0);
    assert.deepEqual([model.doGenerateCalls[0]?.temperature, model.doGenerateCalls[0]?.maxOutputTokens], [0, 4096]);
  });

  it('but not one that gives its prompt back, whose examples look like a reply', async () => {
    const model = new MockLanguageModelV3({
      doGenerate: async ({ prompt }) => ({
        content: [{ type: 'text', text: prompt.map((each) => (typeof each.content === 'string' ? each.content : texts(each.content))).join('\n') }],
        finishReason: { unified: 'stop', raw: 'stop' },
        usage,
        warnings: [],
      }),
    });
    await assert.rejects(scoreWith({ model: model as unknown as MastraModelConfig }), (error) => /no verdicts|is empty/.test(told(error)));
  });

  it('as one of a provider of the AI SDK, by the settings of the LLM judge', async () => {
    const acme = createOpenAI({ baseURL: judge.url, apiKey: KEY });
    const env = { GUARDRAIL_JUDGE__LLM__MAX_OUTPUT_TOKENS: '16000' };
    assert.equal((await scoreWith({ model: acme.chat('judge'), guardrail: { ...guardrail, env } })).score, 0);
    assert.match(JSON.stringify(judge.calls.at(-1)), /"max_(completion_)?tokens":16000/);
  });

  it('and the local judge if none is given', async () => assert.equal((await scoreWith({})).score, 1));
});

describe('a model that fails', () => {
  it('says so in the words of its provider', async () => {
    await assert.rejects(scoreWith({ model: { id: 'acme/judge', url: judge.url, apiKey: 'another' } }), (error) =>
      /no claim of the answer could be judged: .*401.*this key is not known here/s.test(told(error)),
    );
  });

  it('says which key is missing, as Mastra does', async () => {
    assert.equal(process.env['OPENAI_API_KEY'], undefined);
    await assert.rejects(scoreWith({ model: 'openai/gpt-4o' }), (error) => /OPENAI_API_KEY/.test(told(error)));
  });
});

it('the port that a guard process asks answers no other program', async () => {
  const model = new MockLanguageModelV3();
  const served = await serve(model as unknown as MastraModelConfig);
  const response = await fetch(`${served.env['GUARDRAIL_JUDGE__LLM__BASE_URL']}/chat/completions`, {
    method: 'POST',
    headers: { authorization: 'Bearer guessed' },
    body: JSON.stringify({ messages: [{ role: 'user', content: 'Well?' }], max_completion_tokens: 9 }),
  });
  served.close();
  assert.equal(response.status, 401);
  assert.equal(model.doGenerateCalls.length, 0);
});

it('an unknown id is an error, and does not keep Node from ending', async () => {
  const code = `
    import { createFaithfulnessScorer } from ${JSON.stringify(new URL('../src/index.ts', import.meta.url).href)};
    const scorer = createFaithfulnessScorer({ model: 'judge', options: { context: ['It costs $49.'] } });
    await scorer.run({ output: 'It costs $49.' }).catch((error) => console.log(error.message));`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', code], { timeout: 60_000 });
  assert.match(stdout, /model configuration/);
});

it('whatever a model throws is an answer of the port', async () => {
  for (const [thrown, status, body] of [
    [{ statusCode: 'ECONNREFUSED' }, 400, '{"error":{"message":"no"}}'],
    [{ statusCode: 1000, isRetryable: true }, 503, '{"error":{"message":"no"}}'],
    [{ statusCode: 429, responseBody: { of: 'another type' } }, 429, '{"error":{"message":"no"}}'],
    [{ statusCode: 500, responseBody: 'its words' }, 500, 'its words'],
  ] as const) {
    const model = new MockLanguageModelV3({ doGenerate: async () => Promise.reject(Object.assign(new Error('no'), thrown)) });
    const served = await serve(model as unknown as MastraModelConfig);
    const response = await fetch(`${served.env['GUARDRAIL_JUDGE__LLM__BASE_URL']}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${served.env['GUARDRAIL_JUDGE__LLM__API_KEY']}` },
      body: JSON.stringify({ messages: [{ role: 'user', content: 'Well?' }], max_completion_tokens: 9 }),
    });
    assert.deepEqual([response.status, await response.text()], [status, body]);
    served.close();
  }
});

describe('what is not understood is refused:', () => {
  const refused = (config: object, kind: typeof TypeError | typeof RangeError, message: RegExp) =>
    assert.throws(() => createFaithfulnessScorer(config as FaithfulnessScorerConfig), (error) => {
      assert.ok(error instanceof kind);
      assert.match(error.message, message);
      return true;
    });

  it('names that are unknown', () => {
    refused({ modle: 'openai/gpt-4o' }, TypeError, /modle; known are model, options, guardrail/);
    refused({ options: { contexts: [] } }, TypeError, /options: unknown: contexts; known are context,/);
    refused({ guardrail: { timeout: 5 } }, TypeError, /guardrail: unknown: timeout; known are model, command,/);
    // @ts-expect-error: and by the compiler
    assert.throws(() => createFaithfulnessScorer({ options: { contexts: [] } }));
  });

  it('a scale that is none, and an unknown score', () => {
    for (const scale of [0, -1, Number.NaN, Infinity, '10']) refused({ options: { scale } }, RangeError, /scale: .* above 0/);
    refused({ options: { score: 'ragas' } }, RangeError, /score: 'ragas'/);
  });

  it('a model that is none, for which the local judge must not answer', () => {
    for (const model of ['', null, () => 'openai/gpt-4o', [{ model: 'openai/gpt-4o' }]]) {
      refused({ model }, TypeError, /model: give an id/);
    }
  });

  it('a time that no timer takes', () => {
    for (const timeoutMs of [0, Number.NaN, Infinity, 2 ** 31]) refused({ guardrail: { timeoutMs } }, RangeError, /timeoutMs: /);
  });

  it('a model beside a guard that has a judge', () => {
    for (const given of [new Guardrail(), { model: 'openai/gpt-4.1' }]) {
      refused({ model: 'openai/gpt-4o', guardrail: given }, TypeError, /new Guardrail\(\{ model \}\)/);
    }
  });
});

it('keys are in no command line', { skip: process.platform !== 'linux' }, async () => {
  await scoreWith({ model: { id: 'acme/judge', url: judge.url, apiKey: KEY } });
  const commands = await Promise.all(
    (await readdir('/proc'))
      .filter((name) => /^\d+$/u.test(name))
      .map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')),
  );
  const guards = commands.filter((each) => each.includes('evaluate\0-\0--format'));
  assert.ok(guards.length > 0);
  for (const each of guards) assert.ok(!each.includes(KEY) && !each.includes('127.0.0.1'));
});

it('asks the model directly, past the proxy that the environment names', async () => {
  const code = `
    import { createFaithfulnessScorer } from ${JSON.stringify(new URL('../src/index.ts', import.meta.url).href)};
    const scorer = createFaithfulnessScorer(${JSON.stringify({
      model: { id: 'acme/judge', url: judge.url, apiKey: KEY },
      options: { context: CONTEXT },
      guardrail,
    })});
    console.log((await scorer.run({ output: ${JSON.stringify(RIGHT)} })).score);`;
  const env = { ...process.env, HTTP_PROXY: 'http://127.0.0.1:9', http_proxy: 'http://127.0.0.1:9' };
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', code], { env });
  assert.equal(stdout.trim(), '0');
});

/** The messages of an error and its causes. */
function told(error: unknown): string {
  return error instanceof Error ? `${error.message}\n${told(error.cause)}` : '';
}
