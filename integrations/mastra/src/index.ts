export { Guardrail, GuardrailError, type GuardrailOptions } from './guardrail.ts';
export {
  createFaithfulnessScorer,
  type FaithfulnessOptions,
  type FaithfulnessScorerConfig,
  type JudgedClaim,
  MASTRA_VERDICT,
  type MastraVerdict,
} from './scorer.ts';
export type { Answer, ClaimVerdict, Document, EvaluationResult, ResponseVerdict, Verdict } from './events.ts';
