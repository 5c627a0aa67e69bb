import { createScorer, notScorable } from '@mastra/core/evals';
import type { ScorerRunInputForAgent, ScorerRunOutputForAgent } from '@mastra/core/evals';
import {
  extractToolResults,
  getAssistantMessageFromRunOutput,
  getUserMessageFromRunInput,
  roundToTwoDecimals,
} from '@mastra/evals/scorers/utils';

import type { ClaimVerdict, Document, ResponseVerdict, Verdict } from './events.ts';
import { Guardrail, type GuardrailOptions } from './guardrail.ts';

/** What Mastra's judge says of a claim. */
export type MastraVerdict = 'yes' | 'no' | 'unsure';

/**
 * Our verdicts in the words of Mastra's judge. A claim that is supported in part is not supported: its "no" is for
 * contradictions. An unverified claim has no word, and is left out of the score.
 */
export const MASTRA_VERDICT: Record<Verdict, MastraVerdict | undefined> = {
  SUPPORTED: 'yes',
  PARTIALLY_SUPPORTED: 'unsure',
  UNSUPPORTED: 'unsure',
  CONTRADICTED: 'no',
  UNVERIFIED: undefined,
};

/** A claim in the analyze step's result: Mastra's fields, and what the guard knows beside them. */
export interface JudgedClaim {
  claim: string;
  verdict: MastraVerdict;
  reason: string;
  guardrail: Pick<ClaimVerdict, 'claim_id' | 'span' | 'severity' | 'verdict' | 'support' | 'evidence' | 'judge'>;
}

export interface FaithfulnessOptions {
  /** The documents of every answer. Default: the results of the run's tools. */
  context?: readonly Document[];
  /** Finds the documents of a run; goes before `context`. */
  contextExtractor?: (
    input: ScorerRunInputForAgent | undefined,
    output: ScorerRunOutputForAgent,
  ) => readonly Document[] | Promise<readonly Document[]>;
  /** The highest score. Default: 1. */
  scale?: number;
  /**
   * `mastra`: supported claims / claims, with two decimals, as Mastra's own scorer. `severity_weighted`: the guard's
   * score, where a wrong price or dose counts more than a detail. Default: `mastra`.
   */
  score?: 'mastra' | 'severity_weighted';
  /** Choose the policy, whose decision is in the preprocess step's result. */
  route?: string;
  tenant?: string;
}

export interface FaithfulnessScorerConfig {
  options?: FaithfulnessOptions;
  /** The guard to ask, or how to start one of its own. One guard serves any number of scorers. */
  guardrail?: Guardrail | GuardrailOptions;
}

/**
 * Mastra's faithfulness scorer, answered by the guard: the same id, steps and scale, but no prompt and no model.
 *
 * Steps: `preprocess` has the claims and the guard's verdict, `analyze` each claim's verdict and reason, then come score
 * and reason. A run without documents, or whose answer states nothing, is not scorable; Mastra's own gives it 0.
 */
export function createFaithfulnessScorer({ options = {}, guardrail }: FaithfulnessScorerConfig = {}) {
  const guard = guardrail instanceof Guardrail ? guardrail : new Guardrail(guardrail);
  const scale = options.scale ?? 1;

  return createScorer({
    id: 'faithfulness-scorer',
    name: 'Faithfulness Scorer',
    description: 'Checks every claim of the answer against its documents with streaming-guardrail',
    type: 'agent',
  })
    .preprocess(async ({ run }) => {
      const answer = getAssistantMessageFromRunOutput(run.output);
      if (!answer) return notScorable('the run has no text to check');
      const contexts = await documentsOf(options, run.input, run.output);
      if (contexts.length === 0) {
        return notScorable('the run has no documents: no tool returned a result, and no context is given');
      }
      const verdict = await guard.check({
        question: getUserMessageFromRunInput(run.input) ?? '',
        contexts,
        answer,
        ...(options.route === undefined ? {} : { route: options.route }),
        ...(options.tenant === undefined ? {} : { tenant: options.tenant }),
      });
      if (verdict.claims.length === 0) return notScorable('the answer states nothing that can be checked');
      if (verdict.score === null) return notScorable('no claim could be checked');
      return { claims: verdict.claims.map((claim) => claim.text), guardrail: verdict };
    })
    .analyze(({ results }) => ({ verdicts: judged(results.preprocessStepResult.guardrail) }))
    .generateScore(({ results }) => {
      const { verdicts } = results.analyzeStepResult;
      if (options.score === 'severity_weighted') return (results.preprocessStepResult.guardrail.score ?? 0) * scale;
      const supported = verdicts.filter((each) => each.verdict === 'yes').length;
      return roundToTwoDecimals((supported / verdicts.length) * scale);
    })
    .generateReason(({ results, score }) => reasonOf(score, results.analyzeStepResult.verdicts));
}

async function documentsOf(
  options: FaithfulnessOptions,
  input: ScorerRunInputForAgent | undefined,
  output: ScorerRunOutputForAgent,
): Promise<readonly Document[]> {
  if (options.contextExtractor !== undefined) return options.contextExtractor(input, output);
  if (options.context !== undefined) return options.context;
  return extractToolResults(output).map(({ toolName, toolCallId, result }, at) => ({
    id: toolCallId === '' ? `${toolName}-${at + 1}` : toolCallId,
    text: typeof result === 'string' ? result : JSON.stringify(result),
    source: toolName,
  }));
}

function judged(verdict: ResponseVerdict): JudgedClaim[] {
  return verdict.claims.flatMap((claim) => {
    const word = MASTRA_VERDICT[claim.verdict];
    if (word === undefined) return [];
    const { claim_id, span, severity, support, evidence, judge } = claim;
    return [
      {
        claim: claim.text,
        verdict: word,
        reason: claim.reasoning || evidence.map((each) => each.quote).join(' … ') || claim.verdict,
        guardrail: { claim_id, span, severity, verdict: claim.verdict, support, evidence, judge },
      },
    ];
  });
}

function reasonOf(score: number, verdicts: readonly JudgedClaim[]): string {
  const unsupported = verdicts.filter((each) => each.verdict !== 'yes');
  const counted = `${verdicts.length - unsupported.length} of ${verdicts.length} claims`;
  const told = unsupported.map(
    ({ claim, reason, guardrail: { verdict, severity } }) => `- ${verdict} (${severity}): "${claim}" ${reason}`,
  );
  return [`The score is ${score} because the documents support ${counted}.`, ...told].join('\n');
}
