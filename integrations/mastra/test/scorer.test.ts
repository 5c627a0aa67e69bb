/** The scorer in Mastra's own pipeline, evaluations, experiments and agents, with a model that answers from a script. */

import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';

import { Agent } from '@mastra/core/agent';
import { Mastra } from '@mastra/core';
import * as evals from '@mastra/core/evals';
import type { MastraModelConfig } from '@mastra/core/llm';
import { InMemoryStore } from '@mastra/core/storage';
import { createTool } from '@mastra/core/tools';
import { createFaithfulnessScorer as createMastrasOwn } from '@mastra/evals/scorers/prebuilt';
import * as utils from '@mastra/evals/scorers/utils';
import { convertArrayToReadableStream, MockLanguageModelV3 } from 'ai/test';
import { z } from 'zod';

import { createFaithfulnessScorer, type FaithfulnessOptions, Guardrail, MASTRA_VERDICT } from '../src/index.ts';
import { BOTH, CONTEXT, PROGRAM, QUESTION, RIGHT, WRONG } from './program.ts';

process.env['MASTRA_TELEMETRY_DISABLED'] = '1';

const { createAgentTestRun, createTestMessage } = utils;

const guard = new Guardrail({ command: [PROGRAM] });
after(() => guard.close());

const scorerOf = (options: FaithfulnessOptions = { context: CONTEXT }) =>
  createFaithfulnessScorer({ options, guardrail: guard });

const runOf = (answer: string) =>
  createAgentTestRun({
    inputMessages: [createTestMessage({ content: QUESTION, role: 'user', id: 'u' })],
    output: [createTestMessage({ content: answer, role: 'assistant', id: 'a' })],
  });

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 1, text: 1, reasoning: undefined },
};

type StreamPart =
  Awaited<ReturnType<MockLanguageModelV3['doStream']>>['stream'] extends ReadableStream<infer Part> ? Part : never;

/** A model that says `texts`, one a call; an object is a call of the tool `search`. */
function scripted(...texts: (string | { query: string })[]): MastraModelConfig {
  let at = 0;
  const next = () => {
    const said = texts[Math.min(at++, texts.length - 1)] ?? '';
    return typeof said === 'string'
      ? { content: [{ type: 'text' as const, text: said }], finish: 'stop' as const }
      : {
          content: [
            { type: 'tool-call' as const, toolCallId: `call-${at}`, toolName: 'search', input: JSON.stringify(said) },
          ],
          finish: 'tool-calls' as const,
        };
  };
  const model = new MockLanguageModelV3({
    doGenerate: async () => {
      const { content, finish } = next();
      return { content, finishReason: { unified: finish, raw: finish }, usage, warnings: [] };
    },
    doStream: async () => {
      const { content, finish } = next();
      const parts: StreamPart[] = [{ type: 'stream-start', warnings: [] }];
      for (const part of content) {
        if (part.type === 'text') {
          parts.push({ type: 'text-start', id: '1' });
          parts.push({ type: 'text-delta', id: '1', delta: part.text });
          parts.push({ type: 'text-end', id: '1' });
        } else {
          parts.push(part);
        }
      }
      parts.push({ type: 'finish', finishReason: { unified: finish, raw: finish }, usage });
      return { stream: convertArrayToReadableStream(parts) };
    },
  });
  // Mastra declares the AI SDK's models with the type of its own wrapper, which the SDK's own doubles don't fit.
  return model as unknown as MastraModelConfig;
}

const search = createTool({
  id: 'search',
  description: 'Searches the price list',
  inputSchema: z.object({ query: z.string() }),
  execute: async () => ({ page: CONTEXT[0] }),
});

const helper = (...said: (string | { query: string })[]) =>
  new Agent({ id: 'helper', name: 'helper', instructions: 'Help.', model: scripted(...said), tools: { search } });

describe('the pipeline', () => {
  it('gives score, reason and steps as Mastra’s own scorer does', async () => {
    const result = await scorerOf().run(runOf(BOTH));
    assert.equal(result.score, 0.5);
    assert.deepEqual(result.preprocessStepResult?.claims, [BOTH.slice(0, BOTH.indexOf(WRONG) - 1), WRONG]);
    assert.deepEqual(
      result.analyzeStepResult?.verdicts.map((each) => each.verdict),
      ['yes', 'no'],
    );
    assert.match(result.analyzeStepResult?.verdicts[1]?.reason ?? '', /49/);
    assert.match(result.reason ?? '', /^The score is 0\.5 because the documents support 1 of 2 claims\./);
    assert.match(result.reason ?? '', /CONTRADICTED \(major\): "The basic plan costs \$79 a month\."/);
  });

  it('has the fields of its own scorer’s results, but for prompts', async () => {
    const ours = await scorerOf().run(runOf(BOTH));
    const said = [
      '{"claims": ["a", "b"]}',
      '{"verdicts": [{"verdict": "yes", "reason": "r"}, {"verdict": "no", "reason": "r"}]}',
      'The score is 0.5 because.',
    ];
    const own = createMastrasOwn({ model: scripted(...said), options: { context: CONTEXT } });
    const theirs = await own.run(runOf(BOTH));
    assert.equal(theirs.score, 0.5);
    const plain = (result: object) =>
      Object.keys(result).filter((name) => !name.endsWith('Prompt') && name !== 'judge').sort();
    assert.deepEqual(plain(ours), plain(theirs));
    assert.deepEqual(
      ours.analyzeStepResult?.verdicts.map(Object.keys).map((names) => names.includes('verdict') && names.includes('reason')),
      [true, true],
    );
  });

  it('scales, and weighs by severity if asked', async () => {
    assert.equal((await scorerOf({ context: CONTEXT, scale: 10 }).run(runOf(BOTH))).score, 5);
    const weighed = await scorerOf({ context: CONTEXT, score: 'severity_weighted' }).run(runOf(BOTH));
    assert.equal(weighed.score, weighed.preprocessStepResult?.guardrail.score);
    assert.ok((weighed.score ?? 1) < 0.9);
  });

  it('takes documents from tools, or from a function', async () => {
    const asked = { toolCallId: 't1', toolName: 'search', args: {}, result: { page: CONTEXT[0] ?? '' }, state: 'result' };
    const silent = { ...asked, toolCallId: 't0', result: undefined as unknown as object };
    const old = createTestMessage({ content: RIGHT, role: 'assistant', toolInvocations: [silent, asked] });
    const part = { type: 'tool-invocation' as const, toolInvocation: { ...asked, state: 'result' as const } };
    const parts = createTestMessage({ content: RIGHT, role: 'assistant', parts: [part, { type: 'text', text: RIGHT }] });
    for (const message of 'mergeToolInvocations' in utils ? [old, parts] : [old]) {
      const { score, preprocessStepResult } = await scorerOf({}).run({ ...runOf(RIGHT), output: [message] });
      assert.equal(score, 1);
      assert.equal(preprocessStepResult?.guardrail.claims[0]?.evidence[0]?.context_id, 't1');
    }
    const found = await scorerOf({ contextExtractor: async () => [{ id: 'prices', text: CONTEXT[0] ?? '' }] }).run(runOf(RIGHT));
    assert.equal(found.preprocessStepResult?.guardrail.claims[0]?.evidence[0]?.context_id, 'prices');
  });

  it('scores a run without documents or text with 0', async () => {
    for (const [options, answer, reason] of [
      [{}, RIGHT, /support 0 of 1 claims.*There is no document/s],
      [{ context: [' ', ''] }, RIGHT, /support 0 of 1 claims.*There is no document/s],
      [{ context: CONTEXT }, '', /because the answer states nothing/],
    ] as const) {
      const result = await scorerOf(options).run(runOf(answer));
      assert.equal(result.score, 0);
      assert.match(result.reason ?? '', reason);
    }
  });

  it('says what documents have to be', async () => {
    for (const context of [CONTEXT[0], [null], [{ content: CONTEXT[0] }]]) {
      const scorer = scorerOf({ context } as unknown as FaithfulnessOptions);
      await assert.rejects(scorer.run(runOf(RIGHT)), /context: give a list of texts/);
    }
  });

  it('does not score one that states nothing, where Mastra has a word for it', async () => {
    const result = await scorerOf().run(runOf('How can I help you?'));
    assert.equal(result.score, 'notScorable' in evals ? undefined : 0);
    assert.match(result.notScorable?.reason ?? result.reason ?? '', /states nothing/);
  });

  it('takes plain texts for question and answer', async () => {
    assert.equal((await scorerOf().run({ input: QUESTION, output: BOTH })).score, 0.5);
  });

  it('fails with the reason if the guard can’t judge', async () => {
    const scorer = createFaithfulnessScorer({ options: { context: CONTEXT }, guardrail: { command: ['/nowhere/guardrail'] } });
    await assert.rejects(scorer.run(runOf(RIGHT)), /install streaming-guardrail/);
  });

  it('has a word for every verdict', () => {
    assert.deepEqual(new Set(Object.values(MASTRA_VERDICT)), new Set(['yes', 'no', 'unsure', undefined]));
  });
});

describe('an agent', () => {
  it('is evaluated by runEvals, with tools as its documents and a threshold', async () => {
    const seen: unknown[] = [];
    const mastra = new Mastra({ agents: { helper: helper({ query: 'price' }, BOTH) }, logger: false });
    const { scores, summary } = await evals.runEvals({
      target: mastra.getAgent('helper'),
      data: [{ input: QUESTION }],
      scorers: [scorerOf({})],
      onItemComplete: ({ scorerResults }) => {
        seen.push(scorerResults);
      },
    });
    assert.equal(summary.totalItems, 1);
    assert.equal(scores['faithfulness-scorer'], 0.5);
    assert.match(JSON.stringify(seen), /CONTRADICTED/);
  });

  it('is the target of an experiment over a dataset', async () => {
    const mastra = new Mastra({
      agents: { helper: helper(BOTH) },
      scorers: { faithfulness: scorerOf() },
      storage: new InMemoryStore(),
      logger: false,
    });
    const dataset = await mastra.datasets.create({ name: 'prices' });
    await dataset.addItem({ input: QUESTION });
    const done = await dataset.startExperiment({ targetType: 'agent', targetId: 'helper', scorers: [scorerOf()] });
    assert.equal(done.status, 'completed');
    assert.deepEqual(
      done.results[0]?.scores.map(({ scorerId, score, error }) => ({ scorerId, score, error })),
      [{ scorerId: 'faithfulness-scorer', score: 0.5, error: null }],
    );
  });

  it('has its live answers scored, and the scores stored', async () => {
    const storage = new InMemoryStore();
    const scores = await storage.getStore('scores');
    assert.ok(scores);
    const { promise: stored, resolve } = Promise.withResolvers<unknown>();
    const save = scores.saveScore.bind(scores);
    scores.saveScore = async (score) => {
      const saved = await save(score);
      resolve(saved);
      return saved;
    };
    const agent = new Agent({
      id: 'helper',
      name: 'helper',
      instructions: 'Help.',
      model: scripted(BOTH),
      scorers: { faithfulness: { scorer: scorerOf(), sampling: { type: 'ratio', rate: 1 } } },
    });
    const mastra = new Mastra({ agents: { helper: agent }, storage, logger: false });
    const answer = await mastra.getAgent('helper').generate(QUESTION);
    assert.equal(answer.text, BOTH);
    await stored;
    const { scores: found } = await scores.listScoresByScorerId({
      scorerId: 'faithfulness-scorer',
      pagination: { page: 0, perPage: 10 },
    });
    assert.deepEqual(
      found.map(({ score, source, entityId }) => ({ score, source, entityId })),
      [{ score: 0.5, source: 'LIVE', entityId: 'helper' }],
    );
    assert.match(found[0]?.reason ?? '', /documents support 1 of 2 claims/);
  });
});
