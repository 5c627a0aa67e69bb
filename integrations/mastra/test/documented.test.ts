/** The twelve kinds of answers that Mastra documents its faithfulness scorer by, with the scores that it documents. */

import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';

import { createAgentTestRun, createTestMessage } from '@mastra/evals/scorers/utils';

import { createFaithfulnessScorer, MASTRA_VERDICT } from '../src/index.ts';
import { KEY, type Said, scriptedJudge } from './judge.ts';
import { PROGRAM } from './program.ts';

const LIBRARY = ['The library opened in 1962.', 'It holds 40,000 books and stands in Graz.', 'It lends music as well.'];
const PLACE = ['The library opened in 1962.', 'It holds 40,000 books and stands in Graz.'];

interface Documented {
  kind: string;
  context: string[];
  answer: string;
  said: Readonly<Record<string, Said>>;
  score: number;
}

const CASES: Documented[] = [
  {
    kind: 'perfect',
    context: LIBRARY,
    answer: 'The library opened in 1962 and holds 40,000 books. It stands in Graz, and it lends music.',
    said: {
      'The library opened in 1962 and holds 40,000 books.': [
        ['The library opened in 1962.', 'supported'],
        ['The library holds 40,000 books.', 'supported'],
      ],
      'It stands in Graz, and it lends music.': [
        ['The library stands in Graz.', 'supported'],
        ['The library lends music.', 'supported'],
      ],
    },
    score: 1,
  },
  {
    kind: 'mixed with contradictions',
    context: LIBRARY,
    answer: 'The library opened in 1962 but holds 90,000 books. It stands in Linz, and it lends music.',
    said: {
      'The library opened in 1962 but holds 90,000 books.': [
        ['The library opened in 1962.', 'supported'],
        ['The library holds 90,000 books.', 'contradicted'],
      ],
      'It stands in Linz, and it lends music.': [
        ['The library stands in Linz.', 'contradicted'],
        ['The library lends music.', 'supported'],
      ],
    },
    score: 0.5,
  },
  {
    kind: 'mixed with speculation',
    context: PLACE,
    answer: 'The library opened in 1962 and may have reading rooms. It might move next year.',
    said: {
      'The library opened in 1962 and may have reading rooms.': [
        ['The library opened in 1962.', 'supported'],
        ['The library may have reading rooms.', 'unsupported'],
      ],
      'It might move next year.': [['The library might move next year.', 'unsupported']],
    },
    score: 0.33,
  },
  { kind: 'empty output', context: PLACE, answer: '', said: {}, score: 0 },
  { kind: 'empty context', context: [], answer: 'The library opened in 1962.', said: {}, score: 0 },
  {
    kind: 'subjective',
    context: PLACE,
    answer: 'The library has a wonderful atmosphere and lovely staff. Visitors seem delighted.',
    said: {
      'The library has a wonderful atmosphere and lovely staff.': [
        ['The library has a wonderful atmosphere.', 'unsupported'],
        ['The library has lovely staff.', 'unsupported'],
      ],
      'Visitors seem delighted.': [['Visitors seem delighted.', 'unsupported']],
    },
    score: 0,
  },
  {
    kind: 'speculative',
    context: PLACE,
    answer: 'Opened in 1962, the library might be planning an extension. It possibly has branches elsewhere.',
    said: {
      'Opened in 1962, the library might be planning an extension.': [
        ['The library opened in 1962.', 'supported'],
        ['The library might be planning an extension.', 'unsupported'],
      ],
      'It possibly has branches elsewhere.': [['The library possibly has branches elsewhere.', 'unsupported']],
    },
    score: 0.33,
  },
  {
    kind: 'compound',
    context: ['The library opened in 1962.', 'Eva Holm is the director.', 'The main building holds 40,000 books.'],
    answer:
      'The library opened in 1962 and holds 40,000 books in its main building. Eva Holm is the director and writes the national reading plan.',
    said: {
      'The library opened in 1962 and holds 40,000 books in its main building.': [
        ['The library opened in 1962.', 'supported'],
        ['The main building of the library holds 40,000 books.', 'supported'],
      ],
      'Eva Holm is the director and writes the national reading plan.': [
        ['Eva Holm is the director.', 'supported'],
        ['Eva Holm writes the national reading plan.', 'unsupported'],
      ],
    },
    score: 0.75,
  },
  {
    kind: 'precise numbers',
    context: ['The library has about 40,000 books as of 2023.'],
    answer: 'The library has 39,812 books.',
    said: { 'The library has 39,812 books.': [['The library has 39,812 books.', 'unsupported']] },
    score: 0,
  },
  {
    kind: 'partially supported',
    context: ['The library stands in Graz.'],
    answer: 'The library stands in Graz, in the old town.',
    said: {
      'The library stands in Graz, in the old town.': [
        ['The library stands in Graz.', 'supported'],
        ['The library stands in the old town.', 'unsupported'],
      ],
    },
    score: 0.5,
  },
  {
    kind: 'factual and speculative',
    context: ['The library has grown from 10,000 to 40,000 books since 1990.'],
    answer: 'The library has grown to 40,000 books and will probably keep growing fast.',
    said: {
      'The library has grown to 40,000 books and will probably keep growing fast.': [
        ['The library has grown to 40,000 books.', 'supported'],
        ['The library will probably keep growing fast.', 'unsupported'],
      ],
    },
    score: 0.5,
  },
  {
    kind: 'implicit',
    context: ['Eva Holm has been the director of the library since 2015.'],
    answer: 'Eva Holm has been running the library for several years.',
    said: {
      'Eva Holm has been running the library for several years.': [
        ['Eva Holm has been running the library for several years.', 'supported'],
      ],
    },
    score: 1,
  },
];

const judge = await scriptedJudge(Object.assign({}, ...CASES.map((each) => each.said)));
after(() => judge.close());
const model = { id: 'acme/judge', url: judge.url, apiKey: KEY } as const;
const WORDS = { supported: 'yes', unsupported: 'unsure', contradicted: 'no' } as const;
const guardrail = { command: [PROGRAM] };

const runOf = (answer: string) =>
  createAgentTestRun({
    inputMessages: [createTestMessage({ role: 'user', content: 'What can you tell me about the library?', id: 'u' })],
    output: [createTestMessage({ role: 'assistant', content: answer, id: 'a' })],
  });

it('there are twelve documented kinds', () => assert.equal(CASES.length, 12));

describe('with a scripted model, a documented case scores as documented:', () => {
  for (const { kind, context, answer, said, score } of CASES) {
    it(kind, async () => {
      const result = await createFaithfulnessScorer({ model, options: { context }, guardrail }).run(runOf(answer));
      assert.equal(result.score, score);
      const { claims } = result.preprocessStepResult ?? {};
      const { verdicts } = result.analyzeStepResult ?? {};
      assert.deepEqual(
        verdicts?.map((each) => each.claim),
        claims,
      );
      for (const { verdict, reason } of verdicts ?? []) {
        assert.ok(Object.values(MASTRA_VERDICT).includes(verdict));
        assert.notEqual(reason, '');
      }
      const expected = Object.entries(said).flatMap(([claim, told]) =>
        told.map(([text, verdict]) => [told.length > 1 ? text : claim, WORDS[verdict]]),
      );
      if (context.length > 0) {
        assert.deepEqual(
          verdicts?.map((each) => [each.claim, each.verdict]),
          expected,
        );
      }
      assert.match(result.reason ?? '', new RegExp(`^The score is ${score} because `, 'u'));
    });
  }
});

// It reads a guess or an outlook together with the fact beside it: the sentence then counts as one statement.
const OTHERWISE_LOCALLY = new Set(['factual and speculative', 'speculative']);

describe('with the local judge, a documented case scores as documented, or less:', () => {
  for (const { kind, context, answer, score } of CASES) {
    it(kind, async () => {
      const result = await createFaithfulnessScorer({ options: { context }, guardrail }).run(runOf(answer));
      if (OTHERWISE_LOCALLY.has(kind)) assert.ok((result.score ?? 1) <= score);
      else assert.equal(result.score, score);
    });
  }
});
