/**
 * How Mastra's documentation uses its faithfulness scorer, with the import changed and nothing else: the reference page's
 * runEvals, a scorer on an agent, a registered one, a run with `createAgentTestRun`, a run with plain texts, a model
 * object of the AI SDK, a model with a URL of its own, a scorer for each case, and a test with a threshold. The compiler
 * checks them against the built package (scripts/mastra-test.sh); nothing here runs.
 */

import { openai } from '@ai-sdk/openai';
import { Mastra } from '@mastra/core';
import { Agent } from '@mastra/core/agent';
import { runEvals } from '@mastra/core/evals';
import { createAnswerRelevancyScorer } from '@mastra/evals/scorers/prebuilt';
import { createAgentTestRun, createTestMessage } from '@mastra/evals/scorers/utils';
import { createFaithfulnessScorer } from '@streaming-guardrail/mastra';

const guide = new Agent({ id: 'guide', name: 'Guide', instructions: 'Tell visitors of Graz.', model: 'openai/gpt-5-mini' });

export async function evaluated() {
  const scorer = createFaithfulnessScorer({
    model: 'openai/gpt-5-mini',
  });

  const result = await runEvals({
    data: [
      {
        input: 'When does the library open?',
      },
      {
        input: 'Which lines stop at the library?',
      },
    ],
    scorers: [scorer],
    target: guide,
    onItemComplete: ({ scorerResults }) => {
      console.log({
        score: scorerResults[scorer.id].score,
        reason: scorerResults[scorer.id].reason,
      });
    },
  });

  console.log(result.scores);
}

export const evaluatedAgent = new Agent({
  id: 'evaluated-guide',
  name: 'Evaluated guide',
  instructions: 'Tell visitors of Graz.',
  model: 'openai/gpt-5-mini',
  scorers: {
    relevancy: {
      scorer: createAnswerRelevancyScorer({ model: 'openai/gpt-5-mini' }),
      sampling: { type: 'ratio', rate: 0.5 },
    },
    faithfulness: {
      scorer: createFaithfulnessScorer({ model: 'openai/gpt-5-mini' }),
      sampling: { type: 'ratio', rate: 1 },
    },
  },
});

export const mastra = new Mastra({
  agents: { evaluatedAgent },
  scorers: {
    faithfulness: createFaithfulnessScorer({ model: 'openai/gpt-5-mini' }),
  },
});

export async function tested() {
  const model = openai('gpt-4o');
  const testCase = { input: 'Where is the library?', context: ['The library stands in Graz.'], output: 'In Graz.' };
  const scorer = createFaithfulnessScorer({ model, options: { context: testCase.context } });
  const inputMessages = [createTestMessage({ role: 'user', content: testCase.input, id: 'test-input' })];
  const output = [createTestMessage({ role: 'assistant', content: testCase.output, id: 'test-output' })];

  const result = await scorer.run(createAgentTestRun({ inputMessages, output }));

  const score: number | undefined = result.score;
  const claims: string[] | undefined = result.preprocessStepResult?.claims;
  const verdicts: { verdict: string; reason: string }[] | undefined = result.analyzeStepResult?.verdicts;
  const reason: string | undefined = result.reason;
  console.log(score, claims, verdicts, reason, result.analyzePrompt);
}

export async function scoredEach(cases: { question: string; answer: string; context: string[] }[]) {
  for (const { question, answer, context } of cases) {
    const options = { context: context.slice(0, 10), scale: 1 };
    const scorer = createFaithfulnessScorer({ model: openai('gpt-4o-mini'), options });
    const { score, reason } = await scorer.run({ input: question, output: answer });
    console.log(score, reason);
  }
}

export const elsewhere = createFaithfulnessScorer({
  model: { id: 'acme/judge', url: 'https://llm.example.com/v1', apiKey: 'key', headers: { 'x-team': 'evals' } },
  options: { scale: 10 },
});

export async function passes(minimum: number): Promise<boolean> {
  const { scores, summary } = await runEvals({
    target: guide,
    data: [{ input: 'When does the library open?', groundTruth: { opens: '9:00' } }],
    scorers: { agent: [createFaithfulnessScorer({ model: 'openai/gpt-5-mini' })] },
  });
  return summary.totalItems === 1 && (scores.agent?.['faithfulness-scorer'] ?? 0) >= minimum;
}
