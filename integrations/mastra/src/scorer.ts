import * as evals from '@mastra/core/evals';
import type { ScorerRunInputForAgent, ScorerRunOutputForAgent } from '@mastra/core/evals';
import type { MastraModelConfig } from '@mastra/core/llm';
import {
  extractToolResults,
  getAssistantMessageFromRunOutput,
  getUserMessageFromRunInput,
  roundToTwoDecimals,
} from '@mastra/evals/scorers/utils';

import type { ClaimVerdict, Document, ResponseVerdict, Verdict } from './events.ts';
import { Guardrail, GuardrailError, type GuardrailOptions, refuseOthers, sharedGuardrail } from './guardrail.ts';

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

/** A statement in the analyze step's result: Mastra's fields, and what the guard knows of its claim beside them. */
export interface JudgedClaim {
  claim: string;
  verdict: MastraVerdict;
  reason: string;
  guardrail: Pick<ClaimVerdict, 'claim_id' | 'span' | 'severity' | 'verdict' | 'support' | 'evidence' | 'judge'>;
}

const STATES_NOTHING = 'the answer states nothing that can be checked';

export interface FaithfulnessOptions {
  /** The documents of every answer; blank ones are none. Default: the results of the run's tools. */
  context?: readonly Document[];
  /** Finds the documents of a run; goes before `context`. */
  contextExtractor?: (
    input: ScorerRunInputForAgent | undefined,
    output: ScorerRunOutputForAgent,
  ) => readonly Document[] | Promise<readonly Document[]>;
  /** The highest score, above 0. Default: 1. */
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
  /** The model that judges, as for Mastra's own scorer. Default: the local judge, or that of the guard's settings. */
  model?: MastraModelConfig | undefined;
  options?: FaithfulnessOptions | undefined;
  /** The guard to ask, or how to start one. Scorers with the same model and options share one. */
  guardrail?: Guardrail | GuardrailOptions | undefined;
}

/**
 * Mastra's faithfulness scorer, answered by the guard: the same arguments, id, steps and scale, but no prompt of Mastra's.
 *
 * Steps: `preprocess` has the claims and the guard's verdict, `analyze` each claim's verdict and reason, then come score
 * and reason. An empty answer scores 0. One that states nothing is not scorable (0 before @mastra/core 1.68).
 */
export function createFaithfulnessScorer({ model, options = {}, guardrail, ...others }: FaithfulnessScorerConfig = {}) {
  refuseOthers(others, ['model', 'options', 'guardrail']);
  refuseOthers(options, ['context', 'contextExtractor', 'scale', 'score', 'route', 'tenant'], 'options: ');
  const { scale = 1, score = 'mastra', route, tenant } = options;
  if (!(Number.isFinite(scale) && scale > 0)) {
    throw new RangeError(`scale: ${scale} is no highest score; give a number above 0, or leave it out for 1`);
  }
  if (score !== 'mastra' && score !== 'severity_weighted') {
    throw new RangeError(`score: '${score}' is unknown; known are mastra, severity_weighted`);
  }
  if (model !== undefined && (guardrail instanceof Guardrail || guardrail?.model !== undefined)) {
    throw new TypeError('model: the guard that is given has a judge of its own; give new Guardrail({ model }), or leave it out');
  }
  const guard = guardrail instanceof Guardrail ? guardrail : sharedGuardrail(model === undefined ? { ...guardrail } : { ...guardrail, model });

  return evals
    .createScorer<any, any>({
      id: 'faithfulness-scorer',
      name: 'Faithfulness Scorer',
      description: 'Checks every claim of the answer against its documents with streaming-guardrail',
      type: 'agent',
    })
    .preprocess(async ({ run }) => {
      const answer = getAssistantMessageFromRunOutput(run.output) ?? '';
      const verdict = await guard.check({
        question: getUserMessageFromRunInput(run.input) ?? '',
        contexts: await documentsOf(options, run.input, run.output),
        answer,
        ...(route === undefined ? {} : { route }),
        ...(tenant === undefined ? {} : { tenant }),
      });
      const claims = statementsOf(verdict).map((each) => each.claim);
      const unanswered = verdict.claims.find((each) => each.findings.length === 0); // findings say why it is left open
      if (claims.length === 0 && unanswered !== undefined) {
        const why = [unanswered.reasoning, guard.failure].filter(Boolean).join('; ');
        throw new GuardrailError(`no claim of the answer could be judged: ${why}`);
      }
      if (claims.length === 0 && answer.trim() !== '' && 'notScorable' in evals) {
        return evals.notScorable(verdict.claims.length === 0 ? STATES_NOTHING : 'no claim could be checked');
      }
      return { claims, guardrail: verdict };
    })
    .analyze(({ results }) => ({ verdicts: statementsOf(results.preprocessStepResult.guardrail) }))
    .generateScore(({ results }) => {
      const { verdicts } = results.analyzeStepResult;
      if (verdicts.length === 0) return 0;
      if (score === 'severity_weighted') return (results.preprocessStepResult.guardrail.score ?? 0) * scale;
      const supported = verdicts.filter((each) => each.verdict === 'yes').length;
      return roundToTwoDecimals((supported / verdicts.length) * scale);
    })
    .generateReason(({ results, score }) => reasonOf(score, results.analyzeStepResult.verdicts));
}

async function documentsOf({ context, contextExtractor }: FaithfulnessOptions, input: any, output: any): Promise<Document[]> {
  const given = (await contextExtractor?.(input, output)) ?? context ?? resultsOfTools(output);
  if (!Array.isArray(given) || given.some((each) => typeof (each?.text ?? each) !== 'string')) {
    throw new TypeError('context: give a list of texts, or of objects with text');
  }
  return given.filter((each) => (typeof each === 'string' ? each : each.text).trim() !== '');
}

function resultsOfTools(output: unknown): Document[] {
  if (!Array.isArray(output)) return [];
  return extractToolResults(output).map(({ toolName, toolCallId, result }, at) => ({
    id: toolCallId === '' ? `${toolName}-${at + 1}` : toolCallId,
    text: typeof result === 'string' ? result : (JSON.stringify(result) ?? ''), // a tool may return nothing
    source: toolName,
  }));
}

/**
 * The parts of each claim that has any, else the claim. One that is not supported although all its parts are stays
 * whole: what is wrong lies between the parts. `statements` in guardrail/evals/scores.py says the same.
 */
function statementsOf(verdict: ResponseVerdict): JudgedClaim[] {
  return verdict.claims.flatMap((claim) => {
    const told = claim.parts.some((part) => part.verdict !== 'SUPPORTED' && part.verdict !== 'UNVERIFIED');
    const apart = claim.parts.length > 0 && claim.verdict !== 'UNVERIFIED' && (told || claim.verdict === 'SUPPORTED');
    return (apart ? claim.parts : [claim]).flatMap((each) => judged(each, claim));
  });
}

function judged({ text, verdict }: { text: string; verdict: Verdict }, claim: ClaimVerdict): JudgedClaim[] {
  const word = MASTRA_VERDICT[verdict];
  if (word === undefined) return [];
  const { claim_id, span, severity, support, evidence, judge } = claim;
  const quotes = evidence.map((each) => each.quote).join(' … ');
  // The claim's reason speaks of what is wrong with it.
  const told = verdict === 'SUPPORTED' && claim.verdict !== 'SUPPORTED' ? '' : claim.reasoning;
  return [
    {
      claim: text,
      verdict: word,
      reason: told || quotes || verdict,
      guardrail: { claim_id, span, severity, verdict, support, evidence, judge },
    },
  ];
}

function reasonOf(score: number, verdicts: readonly JudgedClaim[]): string {
  if (verdicts.length === 0) return `The score is ${score} because ${STATES_NOTHING}.`;
  const unsupported = verdicts.filter((each) => each.verdict !== 'yes');
  const counted = `${verdicts.length - unsupported.length} of ${verdicts.length} claims`;
  const told = unsupported.map(
    ({ claim, reason, guardrail: { verdict, severity } }) => `- ${verdict} (${severity}): "${claim}" ${reason}`,
  );
  return [`The score is ${score} because the documents support ${counted}.`, ...told].join('\n');
}
